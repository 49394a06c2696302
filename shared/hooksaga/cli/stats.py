"""`hooksaga stats`: the current backlog."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.terminal import console, show_json, table_of, until_interrupted

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

MEANINGS = {
    "outbox": "events not routed yet",
    "sagas_waiting": "deliveries waiting for their next attempt",
    "sagas_due": "overdue deliveries",
    "jobs_pending": "attempts waiting for a worker",
    "jobs_leased": "attempts in flight",
    "results_unapplied": "results not applied yet",
    "dead_letters_24h": "dead letters in the last 24 hours",
    "oldest_due_seconds": "age of the oldest due delivery",
    "delivered_last_minute": "delivered in the last minute",
    "retention_behind_seconds": "age of the oldest rows that retention should have deleted by now",
}


def stats(
    watch: Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between updates, with --watch.")] = 2.0,
    *,
    api: Api,
) -> None:
    """Show the backlog, its age, and the throughput.

    With --watch --json each update is one line of JSON.
    """
    client = api.connect()
    if not watch:
        _show(client, api.as_json)
    elif api.as_json or not console().is_terminal:
        until_interrupted(lambda: _show(client, api.as_json), interval)
    else:
        _watch(client, interval)


def _show(client: "ApiClient", as_json: bool) -> None:
    answer = client.fetch("GET", "/v1/stats")
    if as_json:
        show_json(answer)
    else:
        console().print(_table(client.read(answer)))


def _watch(client: "ApiClient", interval: float) -> None:
    from rich.live import Live

    with Live(console=console(), auto_refresh=False) as live:
        until_interrupted(
            lambda: live.update(_table(client.call("GET", "/v1/stats")), refresh=True), interval
        )


def _table(found: dict[str, Any]) -> Any:
    rows = [(name, _rounded(value), MEANINGS.get(name, "")) for name, value in found.items()]
    return table_of(("", "now", ""), rows)


def _rounded(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value
