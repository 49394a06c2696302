"""Current problems, in figures whose cost does not depend on the size of the tables. Reads only.

Rates are exact for a minute with few attempts. For a minute with more than SAMPLE, the last SAMPLE attempts are read,
and the count of the whole minute is estimated from the time between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries

MINUTES = 60
SAMPLE = 300
LATENCY_SAMPLE = 30
MAX_COUNTED = 10_000
"""Limit of counting open work: this number means that many or more."""

FAILURES_SEEN = 1_000
LISTED = 8


@dataclass(frozen=True, slots=True)
class Minute:
    """Attempts that ended within one minute. p50 and p95: end-to-end latency in milliseconds, None without deliveries.

    estimated: the counts are estimated from a sample.
    """

    minute: datetime
    completed: int
    failed: int
    estimated: bool
    p50: int | None = None
    p95: int | None = None


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Open work, counted up to MAX_COUNTED. oldest_due_seconds: None if nothing waits; negative if none is due.
    retention_behind_seconds: None if everything is kept for ever."""

    unrouted: int
    due: int
    retrying: int
    ready: int
    in_flight: int
    dead_letters_24h: int
    oldest_due_seconds: float | None
    retention_behind_seconds: float | None
    at: datetime


@dataclass(frozen=True, slots=True)
class DueSaga:
    id: int
    subscription_id: int
    status: str
    attempt_count: int
    next_attempt_at: datetime
    webhook_id: UUID
    event_type: str


@dataclass(frozen=True, slots=True)
class ErrorCodeCount:
    """Number of the newest failures of the last hour that ended with this error code."""

    error_code: str
    attempts: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A subscription whose attempts only fail, or that was disabled because of that."""

    id: int
    tenant_id: str
    event_types: list[str]
    callback_url: str
    consecutive_failures: int
    first_failure_at: datetime | None
    last_error_code: str | None
    disabled_at: datetime | None
    disabled_reason: str | None


@dataclass(frozen=True, slots=True)
class HealthSummary:
    subscription_id: int
    consecutive_failures: int
    first_failure_at: datetime | None
    last_success_at: datetime | None
    last_error_code: str | None
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Overview:
    minutes: Sequence[Minute]
    work: OpenWork
    oldest: Sequence[DueSaga]
    errors: Sequence[ErrorCodeCount]


async def read_overview(connection: Connection) -> Overview:
    """Read the last MINUTES and the current open work, with the operator's role."""
    work = await fetch_row(connection, _query("backlog"), {"most": MAX_COUNTED}, OpenWork)
    assert work is not None
    oldest = await fetch_rows(connection, _query("oldest_due"), {"limit": LISTED}, DueSaga)
    wanted = {"sample": FAILURES_SEEN, "limit": LISTED}
    errors = await fetch_rows(connection, _query("newest_failures"), wanted, ErrorCodeCount)
    return Overview(await _minutes(connection), work, oldest, errors)


async def failing_and_disabled_endpoints(connection: Connection) -> list[Endpoint]:
    """Return endpoints that only fail, longest first, then disabled ones, latest first."""
    failing = await fetch_rows(connection, _query("failing_endpoints"), {"limit": LISTED}, Endpoint)
    disabled = await fetch_rows(connection, _query("disabled_endpoints"), {"limit": LISTED}, Endpoint)
    return failing + disabled


async def health_of(connection: Connection, subscription_ids: Sequence[int]) -> dict[int, HealthSummary]:
    """Return the health of each subscription that has a record of it, by id."""
    params = {"ids": list(subscription_ids)}
    rows = await fetch_rows(connection, _query("health_of_subscriptions"), params, HealthSummary)
    return {row.subscription_id: row for row in rows}


@dataclass(frozen=True, slots=True)
class _Counted:
    minute: datetime
    seen: int
    completed: int
    failed: int
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class _Latencies:
    minute: datetime
    percentiles: list[int]


async def _minutes(connection: Connection) -> list[Minute]:
    params = {"minutes": MINUTES, "sample": SAMPLE}
    counted = await fetch_rows(connection, _query("minutes"), params, _Counted)
    params = {"minutes": MINUTES, "sample": LATENCY_SAMPLE}
    rows = await fetch_rows(connection, _query("latencies"), params, _Latencies)
    latencies = {row.minute: row.percentiles for row in rows}
    return [_minute(row, latencies.get(row.minute)) for row in counted]


def _minute(row: _Counted, percentiles: list[int] | None) -> Minute:
    p50, p95 = percentiles or (None, None)
    share = _sampled_share(row)
    completed, failed = round(row.completed / share), round(row.failed / share)
    return Minute(row.minute, completed, failed, share < 1, p50, p95)


def _sampled_share(row: _Counted) -> float:
    """Return the share of its minute that a sample covers: 1 for the whole minute."""
    if row.seen < SAMPLE or row.oldest is None or row.newest is None:
        return 1.0
    ended = min(row.newest, row.minute + timedelta(minutes=1))
    whole, covered = ended - row.minute, ended - row.oldest
    return max(min(covered / whole, 1.0), 1e-4) if whole else 1.0


def _query(name: str) -> Any:
    return load_queries("console")[name]
