"""`hooksaga attempts`: the attempt log."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, Cursor, Limit, Tenant, connect
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

app = typer.Typer(no_args_is_help=True, help="The attempt log: list and show attempts.")

PATH = "/v1/attempts"

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The attempt's number.")]
Subscription = Annotated[int | None, typer.Option(min=1, help="Filter by subscription.", show_default=False)]
EventType = Annotated[str | None, typer.Option(help="Filter by event type.", show_default=False)]
StatusClass = Annotated[
    str | None,
    typer.Option(help="Filter by response class: 2xx, 3xx, 4xx, 5xx, or none.", show_default=False),
]
ErrorCode = Annotated[
    str | None, typer.Option(help="Filter by error code, e.g. http_503.", show_default=False)
]
Failed = Annotated[bool, typer.Option("--failed", help="Show failed attempts only.")]


@app.command("list")
def list_all(
    tenant: Tenant = None,
    subscription: Subscription = None,
    event_type: EventType = None,
    status_class: StatusClass = None,
    error_code: ErrorCode = None,
    failed: Failed = False,
    finished_after: Annotated[
        str | None, typer.Option(help="Finished at or after, e.g. 2026-01-31T12:00:00Z.", show_default=False)
    ] = None,
    finished_before: Annotated[str | None, typer.Option(help="Finished before.", show_default=False)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List finished attempts, newest first. Filters can be combined."""
    wanted = {
        **attempt_filter(tenant, subscription, event_type, failed),
        "status_class": status_class,
        "error_code": error_code,
        "finished_after": finished_after,
        "finished_before": finished_before,
    }
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params={**wanted, "limit": limit, "cursor": cursor})
        page = client.read(answer)
    if as_json:
        show_json(answer)
        return
    columns = (
        "id",
        "ended",
        "tenant",
        "event type",
        "subscription",
        "attempt",
        "why",
        "result",
        "took",
        "address",
    )
    show_table(columns, [_row(one) for one in page["items"]])
    if page["next"]:
        echo_error(f"More results: --cursor {page['next']}")


def attempt_filter(
    tenant: str | None, subscription: int | None, event_type: str | None, failed: bool
) -> dict[str, Any]:
    """Return the query parameters that lists and followers share; None means no filter."""
    return {
        "tenant_id": tenant,
        "subscription_id": subscription,
        "event_type": event_type,
        "outcome": "failed" if failed else None,
    }


def attempt_of(one: dict[str, Any]) -> str:
    """Format as `2/5`: the second of at most five. Attempts of older versions have no limit."""
    limit = one["max_attempts"]
    return str(one["attempt_number"]) if limit is None else f"{one['attempt_number']}/{limit}"


def result_of(one: dict[str, Any]) -> str:
    """Return the error code or the status, and a note if the POST was sent again on a new connection."""
    result = str(one["error_code"] or one["response_status"] or one["status"])
    return f"{result} (reconnected)" if one["reconnected"] else result


def duration_of(one: dict[str, Any]) -> str:
    return "" if one["duration_ms"] is None else f"{one['duration_ms']} ms"


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    return (
        one["id"],
        short_time(one["finished_at"]),
        one["tenant_id"],
        one["event_type"],
        one["subscription_id"],
        attempt_of(one),
        one["trigger"],
        result_of(one),
        duration_of(one),
        one["resolved_ip"],
    )


@app.command()
def show(id: Id, api_url: ApiUrl = DEFAULT_URL, api_key: ApiKey = None, as_json: AsJson = False) -> None:  # noqa: A002
    """Show one attempt with its request headers and the beginning of the response."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", f"{PATH}/{id}")
        attempt = client.read(answer)
    if as_json:
        show_json(answer)
        return
    headers, body = attempt.pop("request_headers"), attempt.pop("response_body")
    truncated = attempt.pop("response_truncated")
    show_fields(attempt)
    _show_part("headers sent", [f"{name}: {value}" for name, value in (headers or {}).items()])
    _show_part("answer, cut" if truncated else "answer", (body or "").splitlines())


def _show_part(title: str, lines: Sequence[str]) -> None:
    if lines:
        echo(f"{title}:")
    for line in lines:
        echo(f"  {printable(line)}")
