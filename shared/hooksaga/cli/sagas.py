"""`hooksaga sagas`: resend deliveries that have ended, retry or cancel one that waits."""

from enum import StrEnum
from typing import Annotated

import typer

from hooksaga.cli import bulk
from hooksaga.cli.api_access import Api, ErrorCode, EventType, Subscription
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.terminal import echo, echo_error

app = Commands(no_args_is_help=True, help="Deliveries: resend, retry now, cancel.")

Id = Annotated[int, typer.Argument(min=1, help="Id of the saga, as shown by `events show`.")]


class Ended(StrEnum):
    """How a delivery ended."""

    COMPLETED = "Completed"
    DEAD_LETTERED = "DeadLettered"


OneId = Annotated[int | None, typer.Argument(metavar="[ID]", min=1, help="One saga; or use --ended-after.")]
EndedAfter = Annotated[
    str | None,
    typer.Option(help="Resend all that ended at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False),
]
EndedBefore = Annotated[str | None, typer.Option(help="Ended before.", show_default="now")]
Status = Annotated[Ended | None, typer.Option(help="Filter by result.", show_default=False)]


@app.command()
def resend(
    id: OneId = None,  # noqa: A002
    ended_after: EndedAfter = None,
    ended_before: EndedBefore = None,
    subscription_id: Subscription = None,
    event_type: EventType = None,
    status: Status = None,
    error_code: ErrorCode = None,
    rate: bulk.Rate = None,
    *,
    how: bulk.Background,
    api: Api,
) -> None:
    """Send a delivery that has ended again, Completed ones too; or all that ended in a time, at a given rate.

    Each becomes a new saga with all its attempts and the same webhook-id. Of several deliveries of an event to a
    subscription, only the newest is resent.
    """
    chosen = {
        "ended_after": ended_after,
        "ended_before": ended_before,
        "subscription_id": subscription_id,
        "event_type": event_type,
        "status": None if status is None else status.value,
        "error_code": error_code,
    }
    given = (*chosen.values(), rate, how.reason)
    if id is not None and (any(one is not None for one in given) or how.dry_run or how.detach):
        raise WrongUse("pass the ID of one saga, or filters, not both")
    if id is None and ended_after is None:
        raise WrongUse("nothing selected: pass an ID, or --ended-after TIME")
    if id is None:
        bulk.run(api, bulk.operation_of("resend", chosen, rate, how), how)
        return
    echo(f"saga {id} is resent as saga {api.ask('POST', f'/v1/sagas/{id}/resend')['saga_id']}")


@app.command("retry-now")
def retry_now(id: Id, *, api: Api) -> None:  # noqa: A002
    """Try a waiting delivery now. `subscriptions retry-now` tries all of a subscription."""
    done = api.ask("POST", f"/v1/sagas/{id}/retry-now")
    echo(f"saga {id} is due now")
    if done["waits_for"] not in (None, "start"):
        echo_error(f"it still waits for: {done['waits_for']}")


@app.command()
def cancel(id: Id, *, api: Api) -> None:  # noqa: A002
    """Cancel a waiting delivery. It becomes a dead letter with the error code `canceled`.

    Bulk requeues exclude it unless they name that error code. It can be requeued by its id.
    """
    api.ask("POST", f"/v1/sagas/{id}/cancel")
    echo(f"saga {id} is canceled: it gets no further attempt")
