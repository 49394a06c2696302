"""`hooksaga erase`: remove everything that a producer sent, from one event or from events of a tenant."""

import time
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import echo_error, show_fields, show_json

PATH = "/v1/erasures"
LOOK_SECONDS = 0.5


def erase(
    reason: Annotated[str, typer.Option(help="Why, for the record. Name the request, not the person.")],
    event: Annotated[str | None, typer.Option(metavar="ID", help="Erase this event: evt_….")] = None,
    tenant: Annotated[str | None, typer.Option(help="Erase all events that this tenant has now.")] = None,
    attribute: Annotated[
        str | None,
        typer.Option(metavar="NAME:VALUE", help="Erase only the tenant's events with this attribute."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the erasure and return.")] = False,
    *,
    api: Api,
) -> None:
    """Erase the content of an event, or of events of a tenant, for good.

    The rows stay, marked as erased. What waits ends as a dead letter. Needs a key with the scope events:erase. Follows
    the erasure until it is completed; Ctrl-C does not stop it.
    """
    if (event is None) == (tenant is None):
        raise WrongUse("give either --event or --tenant")
    if attribute is not None and tenant is None:
        raise WrongUse("give --tenant with --attribute")
    if not yes:
        chosen = (
            f"events of tenant {tenant} with {attribute}" if attribute else f"all events of tenant {tenant}"
        )
        typer.confirm(f"Erase {event or chosen}? This cannot be undone", abort=True)
    wanted = {"event_id": event, "tenant_id": tenant, "attribute": attribute, "reason": reason}
    client = api.connect()
    erasure: dict[str, Any] = client.call(
        "POST", PATH, json={name: value for name, value in wanted.items() if value is not None}
    )
    shown = -1
    while not detach and erasure["status"] == "Running":
        if erasure["events"] != shown:
            shown = erasure["events"]
            echo_error(f"erasure {erasure['id']}: {shown} events so far")
        time.sleep(LOOK_SECONDS)
        erasure = client.call("GET", f"{PATH}/{erasure['id']}")
    if api.as_json:
        show_json(erasure)
    else:
        show_fields(erasure)
