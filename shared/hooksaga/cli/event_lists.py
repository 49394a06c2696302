"""`hooksaga events list` and `find`: search of events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api, EventType, Page, Tenant
from hooksaga.cli.event_tree import event_tree
from hooksaga.cli.failures import CommandFailed
from hooksaga.cli.terminal import Columns, console, short_time, show_items, show_json

PATH = "/v1/events"


@dataclass(frozen=True)
class EventFilter:
    """Filters of the list, named as in the API."""

    tenant_id: Tenant = None
    event_type: EventType = None
    idempotency_key: Annotated[
        str | None, typer.Option(help="Filter by idempotency key.", show_default=False)
    ] = None
    attribute: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:VALUE", help="Filter by attribute, e.g. order_id:ORD-10100.", show_default=False
        ),
    ] = None
    status: Annotated[
        str | None,
        typer.Option(
            help="waiting, dead, delivered or none; the last two within the last 24 hours.",
            show_default=False,
        ),
    ] = None
    subscription_id: Annotated[
        int | None,
        typer.Option(
            "--subscription", min=1, help="With an attempt for this subscription.", show_default=False
        ),
    ] = None
    error_code: Annotated[
        str | None, typer.Option(help="With an attempt that failed with this code.", show_default=False)
    ] = None
    accepted_after: Annotated[
        str | None, typer.Option(help="Accepted at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False)
    ] = None
    accepted_before: Annotated[str | None, typer.Option(help="Accepted before.", show_default=False)] = None


def _deliveries(one: Mapping[str, Any]) -> str:
    """Return the deliveries by state, such as `2 completed, 1 dead`."""
    counts = [f"{one[name]} {name}" for name in ("completed", "open", "dead") if one[name]]
    return ", ".join(counts) or ("none" if one["routed"] else "not routed")


_COLUMNS: Columns = {
    "id": "id",
    "accepted": lambda one: short_time(one["created_at"]),
    "tenant": "tenant_id",
    "event type": "event_type",
    "idempotency key": "idempotency_key",
    "deliveries": _deliveries,
}


def list_events(*, wanted: EventFilter, page: Page, api: Api) -> None:
    """List events, newest first. Filters can be combined."""
    api.show_list(PATH, {**vars(wanted), **vars(page)}, _COLUMNS)


def find(
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="An event id, idempotency key, or value of an attribute."),
    ],
    tenant_id: Tenant = None,
    *,
    api: Api,
) -> None:
    """Find an event by its id, whole or shortened, its idempotency key, or the value of an attribute.

    A single match is shown with its deliveries.
    """
    client = api.connect()
    answer = client.fetch("GET", PATH, params={"search": text, "tenant_id": tenant_id})
    found = client.read(answer)["items"]
    if api.as_json:
        show_json(answer)
    elif len(found) == 1:
        console().print(event_tree(client.call("GET", f"{PATH}/{found[0]['id']}")))
    elif found:
        show_items(_COLUMNS, found)
    else:
        raise CommandFailed(f"no event is named {text!r}")
