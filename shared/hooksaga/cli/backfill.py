"""`hooksaga subscriptions backfill`: deliver older events to a subscription."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.bulk import Background, Rate, operation_of, run


def backfill(
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")],  # noqa: A002
    since: Annotated[str, typer.Option(help="Events accepted at or after, e.g. 2026-01-31T12:00:00Z.")],
    until: Annotated[str | None, typer.Option(help="Events accepted before.", show_default="now")] = None,
    rate: Rate = None,
    *,
    how: Background,
    api: Api,
) -> None:
    """Deliver older events that the subscription never received, at a given rate. Safe to repeat."""
    run(
        api, operation_of("backfill", {"subscription_id": id, "since": since, "until": until}, rate, how), how
    )
