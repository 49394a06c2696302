"""`hooksaga subscriptions health`, and the commands shown after a disabled subscription is enabled again."""

from typing import Any

from hooksaga.cli.api_access import Api
from hooksaga.cli.subscription_options import Id
from hooksaga.cli.terminal import echo_error, show_fields


def show_health(id: Id, *, api: Api) -> None:  # noqa: A002
    """Show the health of an endpoint: failures since the last success, and the reason if it is disabled."""
    show_fields(api.ask("GET", f"/v1/subscriptions/{id}/health"))


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
