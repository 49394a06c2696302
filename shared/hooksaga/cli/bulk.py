"""`hooksaga bulk`: bulk requeues, resends and backfills, which run in the background at their rate.

`dead-letters requeue --rate`, `sagas resend` and `subscriptions backfill` start one and follow it like `bulk watch`.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.api_access import Api, Page, Tenant
from hooksaga.cli.failures import CommandFailed
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.terminal import (
    Columns,
    echo,
    echo_error,
    progress_bar,
    short_time,
    show_fields,
    show_items,
    show_json,
)

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

app = Commands(
    no_args_is_help=True,
    help="Bulk requeues, resends and backfills: list, watch, pause, resume, stop, change the rate.",
)

PATH = "/v1/bulk-operations"
ENDED = ("Stopped", "Completed")
LOOK_SECONDS = 0.5
OUTCOME_SECONDS = 10
"""How long `watch` waits after the end of an operation for the first attempts of its deliveries."""

OUTCOMES = {"delivered": "delivered", "failed again": "failed", "under way": "under_way"}
TIMEOUT_SECONDS = 60
"""How long `watch` waits for an unavailable API, for example during a restart."""

KIND_NOUNS = {"requeue": "dead letters", "backfill": "events", "resend": "deliveries"}

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The operation's number.")]
Rate = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        max=1000,
        help="Deliveries started per second, for all endpoints together.",
        show_default="20",
    ),
]


@dataclass(frozen=True)
class Background:
    """Options of commands that start an operation."""

    reason: Annotated[
        str | None, typer.Option(help="Reason, stored with the operation.", show_default=False)
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the matches and change nothing.")] = False
    detach: Annotated[bool, typer.Option("--detach", help="Start the operation and return.")] = False


_COLUMNS: Columns = {
    "id": "id",
    "kind": "kind",
    "tenant": lambda one: one["tenant_id"] or "all",
    "status": "status",
    **OUTCOMES,
    "skipped": "skipped",
    "of": "matched",
    "per second": "rate_per_second",
    "began": lambda one: short_time(one["created_at"]),
    "by": "created_by",
    "reason": "reason",
}


@app.command("list")
def list_all(
    tenant_id: Tenant = None,
    status: Annotated[
        str | None, typer.Option(help="Running, Paused, Stopped or Completed.", show_default=False)
    ] = None,
    *,
    page: Page,
    api: Api,
) -> None:
    """List operations, newest first."""
    api.show_list(PATH, {"tenant_id": tenant_id, "status": status, **vars(page)}, _COLUMNS)


@app.command()
def show(id: Id, *, api: Api) -> None:  # noqa: A002
    """Show one operation and its progress for each subscription."""
    operation = api.ask("GET", f"{PATH}/{id}")
    lanes = operation.pop("lanes")
    chosen = ", ".join(
        f"{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in operation["filter"].items()
    )
    show_fields({**operation, "filter": chosen or "all", "reason": operation["reason"] or None})
    same = {name: name for name in ("matched", "done", "skipped")}
    show_items({"subscription": "subscription_id", **same, **OUTCOMES, "finished": "finished"}, lanes)


@app.command()
def watch(id: Id, *, api: Api) -> None:  # noqa: A002
    """Watch one operation until it ends. Ctrl-C does not stop the operation."""
    client = api.connect()
    follow(client, client.call("GET", f"{PATH}/{id}"), api.as_json)


@app.command()
def pause(id: Id, *, api: Api) -> None:  # noqa: A002
    """Pause an operation. Started deliveries continue."""
    echo(_summary(api.ask("POST", f"{PATH}/{id}/pause")))


@app.command()
def resume(id: Id, *, api: Api) -> None:  # noqa: A002
    """Resume a paused operation."""
    echo(_summary(api.ask("POST", f"{PATH}/{id}/resume")))


@app.command()
def stop(id: Id, *, api: Api) -> None:  # noqa: A002
    """Stop an operation permanently. Started deliveries continue."""
    echo(_summary(api.ask("POST", f"{PATH}/{id}/stop")))


@app.command()
def rate(
    id: Id,  # noqa: A002
    per_second: Annotated[float, typer.Argument(min=0.01, max=1000, help="Deliveries started per second.")],
    *,
    api: Api,
) -> None:
    """Change the rate of an operation."""
    echo(_summary(api.ask("PATCH", f"{PATH}/{id}", json={"rate_per_second": per_second})))


def operation_of(
    kind: str, chosen: Mapping[str, Any], rate_per_second: float | None, how: Background
) -> dict[str, Any]:
    """Return the body of POST /v1/bulk-operations, without fields that are None."""
    fields = {"kind": kind, "rate_per_second": rate_per_second, "reason": how.reason}
    given = {name: value for name, value in fields.items() if value is not None}
    return {**given, "filter": {name: value for name, value in chosen.items() if value is not None}}


def run(api: Api, wanted: Mapping[str, Any], how: Background) -> None:
    """Start the operation and follow it to its end, or show the counts of a dry run."""
    client = api.connect()
    answer = client.fetch("POST", PATH, json={**wanted, "dry_run": how.dry_run})
    operation = client.read(answer)
    if api.as_json and (how.dry_run or how.detach):
        show_json(answer)
    elif how.dry_run:
        _say_count(operation)
    elif how.detach:
        echo(_summary(operation))
        echo_error(f"The operation runs in the background: hooksaga bulk watch {operation['id']}")
    else:
        if not operation["created"]:
            echo_error(f"the same operation exists as {operation['id']} and is {operation['status']}")
        follow(client, operation, api.as_json)


def _say_count(count: Mapping[str, Any]) -> None:
    things = KIND_NOUNS[count["kind"]]
    per_second = f"{count['rate_per_second']:g}"
    echo(
        f"{count['matched']} {things} of {count['subscriptions']} subscriptions match; at {per_second} per second "
        f"this takes at least {_duration(count['seconds'])}; nothing was changed"
    )


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def follow(client: "ApiClient", operation: dict[str, Any], as_json: bool) -> None:
    """Show the progress until the operation ends; Ctrl-C does not stop the operation."""
    number = operation["id"]
    try:
        operation = _watch(client, operation)
    except KeyboardInterrupt:
        echo_error(
            f"bulk operation {number} continues in the background; to watch: hooksaga bulk watch {number}; "
            f"to pause: hooksaga bulk pause {number}; to stop: hooksaga bulk stop {number}"
        )
        return
    if as_json:
        show_json(operation)
    else:
        echo(_summary(operation))
    if operation["stop_reason"] is not None:
        raise CommandFailed(
            f"bulk operation {number} stopped by itself: nearly all of its deliveries failed\nlook at the errors with "
            f"`hooksaga attempts list --failed`, fix the endpoint, then run the same command for the rest"
        )


def _watch(client: "ApiClient", operation: dict[str, Any]) -> dict[str, Any]:
    deadline: float | None = None
    with progress_bar() as bar:
        task = bar.add_task("", total=None)
        while True:
            bar.update(
                task,
                description=f"{operation['kind']} {operation['id']} {operation['status']}",
                total=operation["matched"],
                completed=operation["done"] + operation["skipped"],
            )
            if operation["status"] in ENDED:
                deadline = deadline or time.monotonic() + OUTCOME_SECONDS
                untried = operation["under_way"] - operation["retrying"]
                if not untried or time.monotonic() > deadline:
                    return operation
            time.sleep(LOOK_SECONDS)
            operation = _look(client, operation["id"])


def _look(client: "ApiClient", operation_id: int) -> dict[str, Any]:
    """Return the current state of the operation. Waits while the API is unavailable."""
    from hooksaga.local.api_client import ApiError

    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return client.call("GET", f"{PATH}/{operation_id}")
        except ApiError as error:
            if error.status not in (0, 503) or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_SECONDS)


def _summary(operation: Mapping[str, Any]) -> str:
    """Return the state of the operation in one line."""
    return (
        f"bulk operation {operation['id']} ({operation['kind']}) is {operation['status']}: "
        f"{operation['done']} of {operation['matched']} {KIND_NOUNS[operation['kind']]} started, "
        f"{operation['skipped']} skipped, at {operation['rate_per_second']:g} per second; "
        + ", ".join(f"{operation[name]} {word}" for word, name in OUTCOMES.items())
    )
