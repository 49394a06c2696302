"""`hooksaga sagas`: resend deliveries that have ended, retry or cancel one that waits."""

from enum import StrEnum
from typing import Annotated

import typer

from hooksaga.cli import bulk
from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_json

app = typer.Typer(no_args_is_help=True, help="Deliveries: resend, retry now, cancel.")

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
Subscription = Annotated[int | None, typer.Option(min=1, help="Filter by subscription.", show_default=False)]
EventType = Annotated[str | None, typer.Option(help="Filter by event type.", show_default=False)]
Status = Annotated[Ended | None, typer.Option(help="Filter by result.", show_default=False)]
ErrorCode = Annotated[
    str | None, typer.Option(help="Filter by error code, e.g. http_503.", show_default=False)
]


@app.command()
def resend(
    id: OneId = None,  # noqa: A002
    ended_after: EndedAfter = None,
    ended_before: EndedBefore = None,
    subscription: Subscription = None,
    event_type: EventType = None,
    status: Status = None,
    error_code: ErrorCode = None,
    rate: bulk.Rate = None,
    reason: bulk.Reason = None,
    dry_run: bulk.DryRun = False,
    detach: bulk.Detach = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Send a delivery that has ended again, Completed ones too; or all that ended in a time, at a given rate.

    Each becomes a new saga with all its attempts and the same webhook-id. Of several deliveries of an event to a
    subscription, only the newest is resent.
    """
    chosen = {
        "ended_after": ended_after,
        "ended_before": ended_before,
        "subscription_id": subscription,
        "event_type": event_type,
        "status": None if status is None else status.value,
        "error_code": error_code,
    }
    is_filter = any(value is not None for value in (*chosen.values(), rate, reason)) or dry_run or detach
    if id is not None and is_filter:
        raise WrongUse("pass the ID of one saga, or filters, not both")
    if id is None and ended_after is None:
        raise WrongUse("nothing selected: pass an ID, or --ended-after TIME")
    if id is None:
        operation = bulk.operation_of("resend", chosen, rate, reason)
        bulk.run(operation, api_url, api_key, as_json, dry_run=dry_run, detach=detach)
        return
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/sagas/{id}/resend")
        done = client.read(answer)
    if as_json:
        show_json(answer)
    else:
        echo(f"saga {id} is resent as saga {done['saga_id']}")


@app.command("retry-now")
def retry_now(
    id: Id,  # noqa: A002
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Try a waiting delivery now. `subscriptions retry-now` tries all of a subscription."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/sagas/{id}/retry-now")
        done = client.read(answer)
    if as_json:
        show_json(answer)
        return
    echo(f"saga {id} is due now")
    if done["waits_for"] not in (None, "start"):
        echo_error(f"it still waits for: {done['waits_for']}")


@app.command()
def cancel(
    id: Id,  # noqa: A002
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a waiting delivery. It becomes a dead letter with the error code `canceled`.

    Bulk requeues exclude it unless they name that error code. It can be requeued by its id.
    """
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/sagas/{id}/cancel")
    if as_json:
        show_json(answer)
    else:
        echo(f"saga {id} is canceled: it gets no further attempt")
