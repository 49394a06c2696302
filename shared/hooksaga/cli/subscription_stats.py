"""Statistics of one subscription, the lower part of `hooksaga subscriptions show`."""

from typing import Any

from hooksaga.cli.terminal import echo, printable, short_time


def show_stats(stats: dict[str, Any]) -> None:
    """Print the statistics below the subscription's fields."""
    echo()
    hours = stats["window_hours"]
    echo(f"the last {'hour' if hours == 1 else f'{hours} hours'}")
    for name, text in _facts(stats):
        echo(f"  {name:<13}  {printable(text)}")


def _facts(stats: dict[str, Any]) -> list[tuple[str, str]]:
    backlog, last = stats["backlog"], stats["last_error"]
    pending, in_flight, retries = (backlog[name] for name in ("pending", "leased", "waiting_retry"))
    waits = f"{pending} pending, {in_flight} in flight, {retries} waiting for a retry"
    return [
        ("success rate", _success_rate(stats)),
        ("latency", _latency(stats["latency_ms"])),
        ("last error", f"{last['code']} at {short_time(last['at'])}" if last else "none"),
        ("backlog", waits),
        ("next retry", short_time(stats["next_retry_at"]) or "none"),
    ]


def _success_rate(stats: dict[str, Any]) -> str:
    if stats["success_rate"] is None:
        return "no attempts"
    counted = f"{stats['completed']} of {stats['completed'] + stats['failed']}"
    since = f", counted since {short_time(stats['since'])}" if stats["since"] else ""
    return f"{stats['success_rate']:.1%} ({counted} attempts{since})"


def _latency(latency: dict[str, int] | None) -> str:
    if latency is None:
        return "no data"
    return ", ".join(f"{name} {value} ms" for name, value in latency.items())
