"""`hooksaga attempts`: the attempt log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api, ErrorCode, EventType, Page, Subscription, Tenant
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.terminal import Columns, echo, printable, short_time, show_fields

app = Commands(no_args_is_help=True, help="The attempt log: list and show attempts.")

PATH = "/v1/attempts"

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The attempt's number.")]
StatusClass = Annotated[
    str | None,
    typer.Option(help="Filter by response class: 2xx, 3xx, 4xx, 5xx, or none.", show_default=False),
]


@dataclass(frozen=True)
class AttemptFilter:
    """Filters of lists and of followers."""

    tenant_id: Tenant = None
    subscription_id: Subscription = None
    event_type: EventType = None
    failed: Annotated[bool, typer.Option("--failed", help="Show failed attempts only.")] = False

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a request; None is no filter."""
        chosen = vars(self) | {"outcome": "failed" if self.failed else None}
        del chosen["failed"]
        return chosen


def attempt_of(one: Mapping[str, Any]) -> str:
    """Format as `2/5`: the second of at most five. Attempts of older versions have no limit."""
    limit = one["max_attempts"]
    return str(one["attempt_number"]) if limit is None else f"{one['attempt_number']}/{limit}"


def result_of(one: Mapping[str, Any]) -> str:
    """Return the error code or the status, and a note if the POST was sent again on a new connection."""
    result = str(one["error_code"] or one["response_status"] or one["status"])
    return f"{result} (reconnected)" if one["reconnected"] else result


def duration_of(one: Mapping[str, Any]) -> str:
    return "" if one["duration_ms"] is None else f"{one['duration_ms']} ms"


_COLUMNS: Columns = {
    "id": "id",
    "ended": lambda one: short_time(one["finished_at"]),
    "tenant": "tenant_id",
    "event type": "event_type",
    "subscription": "subscription_id",
    "attempt": attempt_of,
    "why": "trigger",
    "result": result_of,
    "took": duration_of,
    "address": "resolved_ip",
}


@app.command("list")
def list_all(
    *,
    wanted: AttemptFilter,
    status_class: StatusClass = None,
    error_code: ErrorCode = None,
    finished_after: Annotated[
        str | None, typer.Option(help="Finished at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False)
    ] = None,
    finished_before: Annotated[str | None, typer.Option(help="Finished before.", show_default=False)] = None,
    page: Page,
    api: Api,
) -> None:
    """List finished attempts, newest first. Filters can be combined."""
    more = {
        "status_class": status_class,
        "error_code": error_code,
        "finished_after": finished_after,
        "finished_before": finished_before,
    }
    api.show_list(PATH, {**wanted.parameters(), **more, **vars(page)}, _COLUMNS)


@app.command()
def show(id: Id, *, api: Api) -> None:  # noqa: A002
    """Show one attempt with its request headers and the headers and beginning of the response."""
    attempt = api.ask("GET", f"{PATH}/{id}")
    sent, received = attempt.pop("request_headers"), attempt.pop("response_headers")
    body, truncated = attempt.pop("response_body"), attempt.pop("response_truncated")
    show_fields(attempt)
    _show_part("headers sent", [f"{name}: {value}" for name, value in (sent or {}).items()])
    _show_part("headers received", [f"{name}: {value}" for name, value in (received or {}).items()])
    _show_part("answer, cut" if truncated else "answer", (body or "").splitlines())


def _show_part(title: str, lines: Sequence[str]) -> None:
    if lines:
        echo(f"{title}:")
    for line in lines:
        echo(f"  {printable(line)}")
