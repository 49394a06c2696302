"""Current problems, in figures whose cost does not depend on the size of the tables. Reads only.

Each count ends at MAX_COUNTED, and so does that of the list which shows the same rows.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.attempts import Outcome
from hooksaga.core.counts import MAX_COUNTED, Count
from hooksaga.core.time_ranges import Span
from hooksaga.operations.attempt_log import AttemptFilter
from hooksaga.operations.attempt_rates import Rate, TimeRange, read_endpoint_rates, read_rates
from hooksaga.operations.count_attempts import count_attempts
from hooksaga.operations.list_dead_letters import count_dead_letters
from hooksaga.operations.open_work import OpenState, count_open_work, counted
from hooksaga.operations.requeue import DeadLetterFilter

LISTED = 8
MAX_CODES = 50
MINUTE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """oldest_due_seconds: of the delivery of oldest_due_event; None if nothing is due. retention_behind_seconds: None
    if everything is kept for ever."""

    at: datetime
    oldest_due_seconds: float | None
    oldest_due_event: str | None
    retention_behind_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Moment):
    """Current figures. minute: the last 60 seconds before `at`."""

    minute: Span
    delivered: Count
    failed: Count
    open_work: dict[OpenState, Count]
    standing_dead_letters: Count


@dataclass(frozen=True, slots=True)
class ErrorCodeCount:
    """Number of failures of a range that ended with this error code."""

    error_code: str
    attempts: int
    last_at: datetime

    @property
    def count(self) -> Count:
        return counted(self.attempts)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A subscription whose attempts only fail, or that was disabled because of that."""

    id: int
    tenant_id: str
    description: str
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
class EndpointActivity:
    """Attempts and failures of one endpoint within a range, and its rates."""

    attempts: Count
    failed: Count
    rates: Sequence[Rate]


@dataclass(frozen=True, slots=True)
class Overview:
    """span: the range that rates, errors and activities are of."""

    figures: Figures
    span: Span
    rates: Sequence[Rate]
    errors: Sequence[ErrorCodeCount]


@dataclass(frozen=True, slots=True)
class _Counted:
    subscription_id: int
    attempts: int
    failed: int


async def read_overview(connection: Connection, wanted: TimeRange) -> Overview:
    """Read the figures and the range that ends now, with the operator's role."""
    figures = await _figures(connection)
    span = Span(figures.at - wanted.length, figures.at)
    params = {"after": span.begin, "before": span.end, "most": MAX_COUNTED, "limit": MAX_CODES}
    errors = await fetch_rows(connection, _query("error_codes"), params, ErrorCodeCount)
    return Overview(figures, span, await read_rates(connection, span, wanted), errors)


async def _figures(connection: Connection) -> Figures:
    now = await fetch_one(connection, _query("moment"), {}, Moment)
    minute = Span(now.at - MINUTE, now.at)

    async def ended(outcome: Outcome) -> Count:
        wanted = AttemptFilter(outcome=outcome, finished_after=minute.begin, finished_before=minute.end)
        return await count_attempts(connection, wanted)

    return Figures(
        **asdict(now),
        minute=minute,
        delivered=await ended(Outcome.COMPLETED),
        failed=await ended(Outcome.FAILED),
        open_work=await count_open_work(connection),
        standing_dead_letters=await count_dead_letters(connection, DeadLetterFilter(standing=True)),
    )


async def read_activities(
    connection: Connection, subscription_ids: Sequence[int], span: Span, wanted: TimeRange
) -> dict[int, EndpointActivity]:
    """Return what some endpoints did within the span, by subscription, with the operator's role."""
    rates = await read_endpoint_rates(connection, subscription_ids, span, wanted)
    params = {"ids": list(subscription_ids), "after": span.begin, "before": span.end, "most": MAX_COUNTED}
    rows = await fetch_rows(connection, _query("count_of_endpoints"), params, _Counted)
    return {
        row.subscription_id: EndpointActivity(
            counted(row.attempts), counted(row.failed), rates[row.subscription_id]
        )
        for row in rows
    }


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


def _query(name: str) -> Any:
    return load_queries("console")[name]
