"""`hooksaga dead-letters`: the dead letter queue."""

from typing import Annotated, Any

import typer

from hooksaga.cli import bulk
from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, Cursor, Limit, Tenant, connect
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import (
    AsJson,
    echo,
    echo_error,
    printable,
    short_time,
    show_fields,
    show_json,
    show_table,
)

app = typer.Typer(no_args_is_help=True, help="The dead letter queue: list, show, requeue.")

PATH = "/v1/dead-letters"
MAX_AT_ONCE = 1000
FILTERS = ("subscription_id", "event_type", "error_code", "failed_after", "failed_before")

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The dead letter's number.")]
Subscription = Annotated[int | None, typer.Option(min=1, help="Filter by subscription.", show_default=False)]
EventType = Annotated[str | None, typer.Option(help="Filter by event type.", show_default=False)]
ErrorCode = Annotated[
    str | None, typer.Option(help="Filter by error code, e.g. http_503.", show_default=False)
]
FailedAfter = Annotated[
    str | None, typer.Option(help="Dead-lettered at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False)
]
FailedBefore = Annotated[str | None, typer.Option(help="Dead-lettered before.", show_default=False)]


@app.command("list")
def list_all(
    tenant: Tenant = None,
    not_requeued: Annotated[
        bool, typer.Option("--not-requeued", help="Show those that were not requeued.")
    ] = False,
    subscription: Subscription = None,
    event_type: EventType = None,
    error_code: ErrorCode = None,
    failed_after: FailedAfter = None,
    failed_before: FailedBefore = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first. Filters can be combined."""
    wanted = {
        "tenant_id": tenant,
        "requeued": "false" if not_requeued else None,
        **_filter(subscription, event_type, error_code, failed_after, failed_before),
    }
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params={**wanted, "limit": limit, "cursor": cursor})
        page = client.read(answer)
    if as_json:
        show_json(answer)
        return
    columns = ("id", "failed", "tenant", "event type", "subscription", "error", "requeued as")
    show_table(columns, [_row(one) for one in page["items"]])
    if page["next"]:
        echo_error(f"More results: --cursor {page['next']}")


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    saga = one["requeued_as"]
    return (
        one["id"],
        short_time(one["failed_at"]),
        one["tenant_id"],
        one["event_type"],
        one["subscription_id"],
        one["final_error_code"],
        "" if saga is None else f"saga {saga}",
    )


@app.command()
def show(id: Id, api_url: ApiUrl = DEFAULT_URL, api_key: ApiKey = None, as_json: AsJson = False) -> None:  # noqa: A002
    """Show one dead letter with its payload."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", f"{PATH}/{id}")
        dead_letter = client.read(answer)
    if as_json:
        show_json(answer)
        return
    from hooksaga.local.raw_json import indented

    payload = dead_letter.pop("payload_snapshot")
    show_fields(dead_letter)
    for line in indented(payload).splitlines():
        echo(f"  {printable(line)}")


OneId = Annotated[int | None, typer.Argument(metavar="[ID]", min=1, help="One dead letter; or use a filter.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Filter as KEY=VALUE, e.g. error_code=http_503; repeatable.",
        show_default=False,
    ),
]
Every = Annotated[bool, typer.Option("--all", help="All dead letters that were not requeued.")]
MostAtOnce = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Maximum number without --rate.", show_default="1000")
]
Rate = Annotated[
    float | None,
    typer.Option(min=0.01, max=1000, help="Requeue all matches at this rate per second.", show_default=False),
]


@app.command()
def requeue(
    id: OneId = None,  # noqa: A002
    subscription: Subscription = None,
    event_type: EventType = None,
    error_code: ErrorCode = None,
    failed_after: FailedAfter = None,
    failed_before: FailedBefore = None,
    where: Where = None,
    every: Every = False,
    limit: MostAtOnce = None,
    rate: Rate = None,
    reason: bulk.Reason = None,
    dry_run: bulk.DryRun = False,
    detach: bulk.Detach = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Requeue one dead letter, or all that match: each gets a new saga with all its attempts. Safe to repeat.

    Canceled and discarded deliveries are excluded unless the filter names their error code. A filter requeues up to
    1,000 at once, the oldest first. With --rate all matches are requeued by a bulk operation in the background: see
    `hooksaga bulk`.
    """
    wanted = _filter(subscription, event_type, error_code, failed_after, failed_before)
    wanted = _with_where(wanted, where or [])
    paced = rate is not None or reason is not None or detach
    _check_choice(id, wanted, every, dry_run or paced)
    if paced:
        _check_no_limit(limit)
        operation = bulk.operation_of("requeue", wanted, rate, reason)
        bulk.run(operation, api_url, api_key, as_json, dry_run=dry_run, detach=detach)
        return
    limit = limit or MAX_AT_ONCE
    path = f"{PATH}/requeue" if id is None else f"{PATH}/{id}/requeue"
    content = None if id is not None else {**wanted, "limit": limit, "dry_run": dry_run}
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", path, json=content)
        done = client.read(answer)
    if as_json:
        show_json(answer)
    elif id is not None:
        echo(f"dead letter {id} is requeued as saga {done['saga_id']}")
    else:
        _show_requeued(done, limit, dry_run)


def _show_requeued(done: dict[str, Any], limit: int, dry_run: bool) -> None:
    if dry_run:
        echo(f"{done['matched']} dead letters match; nothing was changed")
        return
    echo(
        f"{done['requeued']} of {done['matched']} requeued; {done['skipped']} skipped (inactive subscription)"
    )
    if done["requeued"] == limit:
        echo_error("There may be more. Repeat the command with --rate 20 to requeue all at 20 per second.")


def _check_choice(dead_letter_id: int | None, wanted: dict[str, Any], every: bool, more: bool) -> None:
    if dead_letter_id is not None and (wanted or every or more):
        raise WrongUse("pass the ID of one dead letter, or filters, not both")
    if dead_letter_id is None and not wanted and not every:
        raise WrongUse("nothing selected: pass an ID, a filter such as --error-code http_503, or --all")


def _check_no_limit(limit: int | None) -> None:
    if limit is not None:
        raise WrongUse(
            "--limit cannot be combined with --rate, --reason or --detach, which requeue all matches"
        )


def _with_where(wanted: dict[str, Any], where: list[str]) -> dict[str, Any]:
    """Return the filter with the fields of --where."""
    both = dict(wanted)
    for text in where:
        name, mark, value = text.partition("=")
        name = name.replace("-", "_")
        name = "subscription_id" if name == "subscription" else name
        if not mark or not value or name not in FILTERS:
            raise WrongUse(f"--where must be KEY=VALUE with a key of {', '.join(FILTERS)}, not {text!r}")
        if name in both:
            raise WrongUse(f"{name} is given twice")
        if name == "subscription_id" and not value.isdecimal():
            raise WrongUse(f"--where subscription_id must be a number, not {value!r}")
        both[name] = int(value) if name == "subscription_id" else value
    return both


def _filter(
    subscription: int | None,
    event_type: str | None,
    error_code: str | None,
    failed_after: str | None,
    failed_before: str | None,
) -> dict[str, Any]:
    fields = {
        "subscription_id": subscription,
        "event_type": event_type,
        "error_code": error_code,
        "failed_after": failed_after,
        "failed_before": failed_before,
    }
    return {name: value for name, value in fields.items() if value is not None}
