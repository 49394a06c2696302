"""`hooksaga subscriptions health`, and the commands shown after a disabled subscription is enabled again."""

from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.terminal import AsJson, echo_error, show_fields, show_json

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")]


def show_health(
    id: Id,  # noqa: A002
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show the health of an endpoint: failures since the last success, and the reason if it is disabled."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", f"/v1/subscriptions/{id}/health")
        health = client.read(answer)
    if as_json:
        show_json(answer)
    else:
        show_fields(health)


def offer_missed_deliveries(subscription: dict[str, Any]) -> None:
    """Show the commands that deliver missed dead letters and events, if there are any."""
    missed = subscription.get("missed")
    if not missed:
        return
    number, more = subscription["id"], "at least " if missed["at_least"] else ""
    if missed["dead_letters"]:
        command = (
            f"hooksaga dead-letters requeue --subscription {number} --failed-after {missed['failing_since']}"
        )
        echo_error(f"{more}{missed['dead_letters']:,} deliveries were dead-lettered meanwhile: {command}")
    if missed["events"] or missed["at_least"]:
        command = f"hooksaga subscriptions backfill {number} --since {missed['since']}"
        echo_error(f"{more}{missed['events']:,} events were accepted meanwhile: {command}")
