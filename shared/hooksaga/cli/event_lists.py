"""`hooksaga events list` and `find`: search of events."""

from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, Cursor, Limit, Tenant, connect
from hooksaga.cli.event_tree import event_tree
from hooksaga.cli.failures import CommandFailed
from hooksaga.cli.terminal import AsJson, console, echo_error, short_time, show_json, show_table

PATH = "/v1/events"
COLUMNS = ("id", "accepted", "tenant", "event type", "idempotency key", "deliveries")


EventType = Annotated[str | None, typer.Option(help="Filter by event type.", show_default=False)]
IdempotencyKey = Annotated[str | None, typer.Option(help="Filter by idempotency key.", show_default=False)]
Attribute = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:VALUE", help="Filter by attribute, e.g. order_id:ORD-10100.", show_default=False
    ),
]
Status = Annotated[
    str | None,
    typer.Option(
        help="waiting, dead, delivered or none; the last two within the last 24 hours.", show_default=False
    ),
]
Subscription = Annotated[
    int | None, typer.Option(min=1, help="With an attempt for this subscription.", show_default=False)
]
ErrorCode = Annotated[
    str | None, typer.Option(help="With an attempt that failed with this code.", show_default=False)
]
AcceptedAfter = Annotated[
    str | None, typer.Option(help="Accepted at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False)
]
AcceptedBefore = Annotated[str | None, typer.Option(help="Accepted before.", show_default=False)]


def list_events(
    tenant: Tenant = None,
    event_type: EventType = None,
    idempotency_key: IdempotencyKey = None,
    attribute: Attribute = None,
    status: Status = None,
    subscription: Subscription = None,
    error_code: ErrorCode = None,
    accepted_after: AcceptedAfter = None,
    accepted_before: AcceptedBefore = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List events, newest first. Filters can be combined."""
    wanted = {
        "tenant_id": tenant,
        "event_type": event_type,
        "idempotency_key": idempotency_key,
        "attribute": attribute,
        "status": status,
        "subscription_id": subscription,
        "error_code": error_code,
        "accepted_after": accepted_after,
        "accepted_before": accepted_before,
        "limit": limit,
        "cursor": cursor,
    }
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params=wanted)
        page = client.read(answer)
    if as_json:
        show_json(answer)
        return
    show_table(COLUMNS, [_row(one) for one in page["items"]])
    if page["next"]:
        echo_error(f"More results: --cursor {page['next']}")


def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="An event id, or whatever names the event.")],
    tenant: Tenant = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Find an event by its id, whole or shortened, its idempotency key, or the value of an attribute.

    A single match is shown with its deliveries.
    """
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params={"search": text, "tenant_id": tenant})
        found = client.read(answer)["items"]
        if as_json:
            show_json(answer)
        elif len(found) == 1:
            console().print(event_tree(client.call("GET", f"{PATH}/{found[0]['id']}")))
        elif found:
            show_table(COLUMNS, [_row(one) for one in found])
        else:
            raise CommandFailed(f"no event is named {text!r}")


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    return (
        one["id"],
        short_time(one["created_at"]),
        one["tenant_id"],
        one["event_type"],
        one["idempotency_key"],
        _deliveries(one),
    )


def _deliveries(one: dict[str, Any]) -> str:
    """Return the deliveries by state, such as `2 completed, 1 dead`."""
    counts = [f"{one[name]} {name}" for name in ("completed", "open", "dead") if one[name]]
    return ", ".join(counts) or ("none" if one["routed"] else "not routed")
