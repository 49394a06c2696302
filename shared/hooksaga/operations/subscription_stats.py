"""Statistics of one subscription: results of its newest attempts, and its backlog. Reads only, a bounded number."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hooksaga.adapters.database import Connection, fetch_row, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.counts import MAX_COUNTED
from hooksaga.core.errors import NotFound

SAMPLE = 10_000
"""Maximum of attempts read: for a busy subscription, the newest of the window."""


@dataclass(frozen=True, slots=True)
class LastError:
    code: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of how long attempts took that reached an address, failed ones included, in milliseconds."""

    p50: int
    p95: int
    p99: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Current backlog; MAX_COUNTED means that many or more."""

    pending: int
    leased: int
    waiting_retry: int


@dataclass(frozen=True, slots=True)
class SubscriptionStats:
    """Counts of the window; success_rate is null without an attempt. since: the oldest counted attempt if there were
    more than SAMPLE, otherwise null."""

    subscription_id: int
    window_hours: int
    completed: int
    failed: int
    success_rate: float | None
    since: datetime | None
    last_error: LastError | None
    next_retry_at: datetime | None
    backlog: Backlog
    latency_ms: Latency | None


@dataclass(frozen=True, slots=True)
class _Window:
    completed: int
    failed: int
    oldest: datetime | None
    latency_ms: list[int | None] | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    next_retry_at: datetime | None
    waiting_retry: int
    leased: int
    pending: int


async def subscription_stats(
    connection: Connection, subscription_id: int, *, window_hours: int, tenant_id: str | None
) -> SubscriptionStats:
    """Return the statistics. Raises NotFound `subscription_not_found`, also for another tenant's or a deleted one."""
    named = {"id": subscription_id, "tenant_id": tenant_id}
    if await fetch_value(connection, load_queries("attempt_log")["subscription_exists"], named) is None:
        raise NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    window = await _one(
        connection,
        "subscription_window",
        {"id": subscription_id, "window_hours": window_hours, "sample": SAMPLE},
        _Window,
    )
    last_error = await _one(connection, "subscription_last_error", {"id": subscription_id}, LastError)
    waiting = await _one(
        connection, "subscription_backlog", {"id": subscription_id, "most": MAX_COUNTED}, _Waiting
    )
    assert window is not None
    assert waiting is not None
    return _stats(subscription_id, window_hours, window, last_error, waiting)


def _stats(
    subscription_id: int,
    window_hours: int,
    window: _Window,
    last_error: LastError | None,
    waiting: _Waiting,
) -> SubscriptionStats:
    counted = window.completed + window.failed
    return SubscriptionStats(
        subscription_id=subscription_id,
        window_hours=window_hours,
        completed=window.completed,
        failed=window.failed,
        success_rate=window.completed / counted if counted else None,
        since=window.oldest if counted >= SAMPLE else None,
        last_error=last_error,
        next_retry_at=waiting.next_retry_at,
        backlog=Backlog(waiting.pending, waiting.leased, waiting.waiting_retry),
        latency_ms=_latency(window.latency_ms),
    )


def _latency(percentiles: list[int | None] | None) -> Latency | None:
    known = [value for value in percentiles or () if value is not None]
    return Latency(*known) if len(known) == 3 else None


async def _one(connection: Connection, query: str, params: dict[str, Any], row: type[Any]) -> Any:
    return await fetch_row(connection, load_queries("attempt_log")[query], params, row)
