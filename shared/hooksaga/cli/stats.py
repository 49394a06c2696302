"""`hooksaga stats`: the backlog now."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.terminal import AsJson, console, show_json, table_of, until_interrupted

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

MEANINGS = {
    "outbox": "events that wait to be routed",
    "sagas_waiting": "deliveries that wait for their next attempt",
    "sagas_due": "of these, due now",
    "jobs_pending": "attempts that wait for a worker",
    "jobs_leased": "attempts in flight",
    "results_unapplied": "results that the saga does not know yet",
    "dead_letters_24h": "given up in the last 24 hours",
    "oldest_due_seconds": "how long the oldest due one waits",
    "delivered_last_minute": "delivered in the last minute",
}


def stats(
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, help="With --watch: seconds between looks.")] = 2.0,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show how much waits, how long, and how fast it goes.

    With --watch --json there is a line of JSON per look.
    """
    with connect(api_url, api_key) as client:
        if not watch:
            _show(client, as_json)
        elif as_json or not console().is_terminal:
            until_interrupted(lambda: _show(client, as_json), interval)
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
