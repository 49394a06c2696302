"""`hooksaga dead-letters`: the dead letter queue."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from hooksaga.cli import bulk
from hooksaga.cli.api_access import Api, ErrorCode, EventType, Page, Subscription, Tenant
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.terminal import Columns, echo, echo_error, printable, short_time, show_fields

app = Commands(no_args_is_help=True, help="The dead letter queue: list, show, requeue.")

PATH = "/v1/dead-letters"
MAX_AT_ONCE = 1000

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The dead letter's number.")]


@dataclass(frozen=True)
class DeadLetterFilter:
    """Filters of a list and of a requeue, named as in the API."""

    subscription_id: Subscription = None
    event_type: EventType = None
    error_code: ErrorCode = None
    failed_after: Annotated[
        str | None,
        typer.Option(help="Dead-lettered at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False),
    ] = None
    failed_before: Annotated[str | None, typer.Option(help="Dead-lettered before.", show_default=False)] = (
        None
    )


FILTERS = tuple(one.name for one in fields(DeadLetterFilter))


_COLUMNS: Columns = {
    "id": "id",
    "failed": lambda one: short_time(one["failed_at"]),
    "tenant": "tenant_id",
    "event type": "event_type",
    "subscription": "subscription_id",
    "error": "final_error_code",
    "requeued as": lambda one: "" if one["requeued_as"] is None else f"saga {one['requeued_as']}",
}


@app.command("list")
def list_all(
    tenant_id: Tenant = None,
    not_requeued: Annotated[
        bool, typer.Option("--not-requeued", help="Show those that were not requeued.")
    ] = False,
    *,
    wanted: DeadLetterFilter,
    page: Page,
    api: Api,
) -> None:
    """List dead letters, newest first. Filters can be combined."""
    more = {"tenant_id": tenant_id, "requeued": "false" if not_requeued else None}
    api.show_list(PATH, {**more, **vars(wanted), **vars(page)}, _COLUMNS)


@app.command()
def show(id: Id, *, api: Api) -> None:  # noqa: A002
    """Show one dead letter with its payload."""
    dead_letter = api.ask("GET", f"{PATH}/{id}")
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
    *,
    wanted: DeadLetterFilter,
    where: Where = None,
    every: Every = False,
    limit: MostAtOnce = None,
    rate: Rate = None,
    how: bulk.Background,
    api: Api,
) -> None:
    """Requeue one dead letter, or all that match: each gets a new saga with all its attempts. Safe to repeat.

    Canceled and discarded deliveries are excluded unless the filter names their error code. A filter requeues up to
    1,000 at once, the oldest first. With --rate all matches are requeued by a bulk operation in the background: see
    `hooksaga bulk`.
    """
    chosen = _with_where(
        {name: value for name, value in vars(wanted).items() if value is not None}, where or []
    )
    paced = rate is not None or how.reason is not None or how.detach
    _check_choice(id, chosen, every, how.dry_run or paced)
    if paced:
        _check_no_limit(limit)
        bulk.run(api, bulk.operation_of("requeue", chosen, rate, how), how)
    elif id is not None:
        done = api.ask("POST", f"{PATH}/{id}/requeue")
        echo(f"dead letter {id} is requeued as saga {done['saga_id']}")
    else:
        limit = limit or MAX_AT_ONCE
        content = {**chosen, "limit": limit, "dry_run": how.dry_run}
        _show_requeued(api.ask("POST", f"{PATH}/requeue", json=content), limit, how.dry_run)


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
