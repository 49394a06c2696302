"""`hooksaga erase`: remove everything that a producer sent, from one event or from all events of a tenant."""

import time
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo_error, show_fields, show_json

PATH = "/v1/erasures"
LOOK_SECONDS = 0.5


def erase(
    reason: Annotated[str, typer.Option(help="Why, for the record. Name the request, not the person.")],
    event: Annotated[str | None, typer.Option(metavar="ID", help="Erase this event: evt_….")] = None,
    tenant: Annotated[str | None, typer.Option(help="Erase all events that this tenant has now.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the erasure and return.")] = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Erase the content of an event, or of all events of a tenant, for good.

    The rows stay, marked as erased. What waits ends as a dead letter. Needs a key with the scope events:erase. Follows
    the erasure until it is completed; Ctrl-C does not stop it.
    """
    if (event is None) == (tenant is None):
        raise WrongUse("give either --event or --tenant")
    if not yes:
        typer.confirm(f"Erase {event or f'all events of tenant {tenant}'}? This cannot be undone", abort=True)
    wanted = {"event_id": event, "tenant_id": tenant, "reason": reason}
    with connect(api_url, api_key) as client:
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
    if as_json:
        show_json(erasure)
    else:
        show_fields(erasure)
