"""`hooksaga subscriptions backfill`: deliver older events to a subscription."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl
from hooksaga.cli.bulk import Detach, DryRun, Rate, Reason, operation_of, run
from hooksaga.cli.terminal import AsJson


def backfill(
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")],  # noqa: A002
    since: Annotated[str, typer.Option(help="Events accepted at or after, e.g. 2026-01-31T12:00:00Z.")],
    until: Annotated[str | None, typer.Option(help="Events accepted before.", show_default="now")] = None,
    rate: Rate = None,
    reason: Reason = None,
    dry_run: DryRun = False,
    detach: Detach = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Deliver older events that the subscription never received, at a given rate. Safe to repeat."""
    chosen = {"subscription_id": id, "since": since, "until": until}
    wanted = operation_of("backfill", chosen, rate, reason)
    run(wanted, api_url, api_key, as_json, dry_run=dry_run, detach=detach)
