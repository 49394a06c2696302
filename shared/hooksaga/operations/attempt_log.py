"""Attempt log: which attempts were made, when, why, and with what result. Reads only.

A list is read page by page along one index, newest first. The number of keys that a page scans is bounded: if few of
them match, a page may be short or empty and still have a next one.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_found, fetch_rows, fetch_value, fetch_values
from hooksaga.adapters.queries import load_queries
from hooksaga.core.attempts import Outcome, SentHeaders, StatusClass, masked_headers, started_by
from hooksaga.core.cloud_event_output import PAYLOAD, DeliveryFormat, cloud_event_of, format_headers
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.responses import read_headers
from hooksaga.core.saga import JobStatus
from hooksaga.core.trace import delivery_traceparent

MAX_SCANNED = 10_000
"""Maximum number of keys that one page scans."""

MAX_MERGED = 100
"""Maximum number of subscriptions whose logs are merged."""

_MAX_STEP = 2_500
_EVERY_CLASS = tuple(range(10))
_STATUS = {Outcome.COMPLETED: JobStatus.COMPLETED, Outcome.FAILED: JobStatus.FAILED}


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Every field that is set must match. finished_after is inclusive, finished_before is not."""

    tenant_id: str | None = None
    subscription_id: int | None = None
    event_type: str | None = None
    error_code: str | None = None
    status_class: StatusClass | None = None
    outcome: Outcome | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None

    @property
    def excludes_completed(self) -> bool:
        """Return whether no completed attempt can match."""
        answered_well = self.status_class in (None, StatusClass.SUCCESS)
        return self.outcome is Outcome.FAILED or self.error_code is not None or not answered_well

    def params(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "class": None if self.status_class is None else self.status_class.digit,
            "status": None if self.outcome is None else _STATUS[self.outcome].value,
        }


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a finished attempt in the log. It never changes."""

    finished_at: datetime
    id: int


Scan = Callable[[Position | None, int], Awaitable[list[Position]]]
"""Returns the positions after the given one, at most as many as asked, in the order of an index."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """Columns that every query of attempts returns. max_attempts is null for attempts of an older version."""

    id: int
    saga_id: int
    attempt_number: int
    max_attempts: int | None
    status: str
    worker_id: str | None
    claim_count: int
    resolved_ip: str | None
    reconnected: bool
    response_status: int | None
    error_code: str | None
    duration_ms: int | None
    attempt_at: datetime
    leased_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class LoggedAttempt(AttemptRow):
    """One attempt with its event."""

    webhook_id: UUID
    event_type: str
    is_test: bool
    tenant_id: str
    subscription_id: int
    requeued_from: int | None
    resent_from: int | None
    bulk_operation_id: int | None


@dataclass(frozen=True, slots=True)
class WholeAttempt(LoggedAttempt):
    """One attempt with the first 16 KiB of the response, the stored data of the request's headers, and the state of its
    saga."""

    saga_status: str
    retry_after_seconds: int | None
    response_head: str | None
    response_body: str | None
    response_truncated: bool
    own_header_names: str | None
    sent_format: DeliveryFormat | None
    traceparent: str | None
    event_created_at: datetime
    cloud_event: str | None

    @property
    def response_headers(self) -> dict[str, str] | None:
        """The first 4 KiB of the response's headers; None without a response, or if an older version made it."""
        return None if self.response_head is None else read_headers(self.response_head)

    @property
    def request_headers(self) -> dict[str, str] | None:
        """The headers of the request, secrets masked; None if none was sent, or an older version sent it."""
        sent = sent_headers(self.leased_at, self.own_header_names)
        return sent and masked_headers(
            sent,
            webhook_id=event_id_text(self.webhook_id),
            event_type=self.event_type,
            attempt_number=self.attempt_number,
            cause=started_by(
                requeued_from=self.requeued_from,
                resent_from=self.resent_from,
                bulk_operation_id=self.bulk_operation_id,
            ),
            traceparent=delivery_traceparent(self.webhook_id, self.traceparent, self.id, self.claim_count),
            formatted=sent_format_headers(
                self.sent_format,
                self.cloud_event,
                webhook_id=self.webhook_id,
                event_type=self.event_type,
                created_at=self.event_created_at,
            ),
            is_test=self.is_test,
        )


def sent_format_headers(
    sent_format: DeliveryFormat | None,
    cloud_event: str | None,
    *,
    webhook_id: UUID,
    event_type: str,
    created_at: datetime,
) -> dict[str, str]:
    """Return the headers that follow from the format of an attempt; None: the payload alone."""
    if sent_format is None or cloud_event is None:
        return format_headers(PAYLOAD, None)
    event = cloud_event_of(
        cloud_event, webhook_id=event_id_text(webhook_id), event_type=event_type, created_at=created_at
    )
    return format_headers(sent_format, event)


def sent_headers(leased_at: datetime | None, own_header_names: str | None) -> SentHeaders | None:
    """Return the sent headers, dated by the lease; None if nothing was sent, or an older version made the attempt."""
    if leased_at is None or own_header_names is None:
        return None
    return SentHeaders(int(leased_at.timestamp()), own_header_names.split())


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """One page of the log. following: the start of the next page; None after the last one."""

    items: list[LoggedAttempt]
    following: Position | None


async def list_attempts(
    connection: Connection, wanted: AttemptFilter, *, before: Position | None = None, limit: int = 50
) -> AttemptPage:
    """List finished attempts before the position, newest first. Each appears once, even if some are added meanwhile."""
    if not await may_see_subscription(connection, wanted):
        return AttemptPage([], None)
    query, more = driving_index(wanted, await subscriptions_of_tenant(connection, wanted))

    async def scan(begin: Position | None, how_many: int) -> list[Position]:
        params = {**more, **between(wanted, begin), "limit": how_many}
        return await fetch_rows(connection, load_queries("attempt_log")[query], params, Position)

    return await gather(connection, wanted, scan, before, limit)


async def may_see_subscription(connection: Connection, wanted: AttemptFilter) -> bool:
    """Return whether the tenant may read the subscription: another tenant must not even learn how far a page scans."""
    if wanted.tenant_id is None or wanted.subscription_id is None:
        return True
    params = {"subscription_id": wanted.subscription_id, "tenant_id": wanted.tenant_id}
    return await fetch_value(connection, load_queries("attempt_log")["is_of_tenant"], params) is not None


async def subscriptions_of_tenant(connection: Connection, wanted: AttemptFilter) -> list[int] | None:
    """Return the subscriptions whose logs are merged for a tenant: the whole log may contain mostly those of others.
    None without a tenant, with one subscription, or for a tenant with more than MAX_MERGED."""
    if wanted.tenant_id is None or wanted.subscription_id is not None:
        return None
    params = {"tenant_id": wanted.tenant_id, "limit": MAX_MERGED + 1}
    ids = await fetch_values(connection, load_queries("attempt_log")["subscriptions_of_tenant"], params)
    return ids if len(ids) <= MAX_MERGED else None


async def gather(
    connection: Connection, wanted: AttemptFilter, scan: Scan, begin: Position | None, limit: int
) -> AttemptPage:
    """Collect a page of matching attempts, in the order of the scan. The fewer match, the larger the steps."""
    found: list[LoggedAttempt] = []
    scanned, step = 0, limit
    while scanned < MAX_SCANNED:
        keys = await scan(begin, step)
        found += await _matching(connection, wanted, keys)
        if len(found) >= limit:
            return AttemptPage(found[:limit], position_of(found[limit - 1]))
        if len(keys) < step:
            return AttemptPage(found, None)
        begin = keys[-1]
        scanned, step = scanned + step, min(step * 4, _MAX_STEP)
    return AttemptPage(found, begin)


def driving_index(wanted: AttemptFilter, merged: Sequence[int] | None) -> tuple[str, dict[str, Any]]:
    """Choose the query that scans the narrowest index, and its own parameters. merged: the only subscriptions."""
    if merged is not None:
        query = "scan_failed_of_subscriptions" if wanted.excludes_completed else "scan_subscriptions"
        return query, {"subscription_ids": list(merged)}
    if wanted.subscription_id is not None:
        query = "scan_failed_of_subscription" if wanted.excludes_completed else "scan_subscription"
        return query, {"subscription_id": wanted.subscription_id}
    if wanted.error_code is not None:
        return "scan_error_code", {"error_code": wanted.error_code}
    if wanted.excludes_completed:
        classes = _EVERY_CLASS if wanted.status_class is None else (wanted.status_class.digit,)
        return "scan_failed_classes", {"classes": list(classes)}
    return "scan_all", {}


def between(wanted: AttemptFilter, before: Position | None) -> dict[str, Any]:
    """Return the start position and the end time of the scan. The database has times beyond all others (infinity)."""
    latest = Position(wanted.finished_before, 0) if wanted.finished_before else None
    begin = before or latest
    return {
        "before_at": begin.finished_at if begin else "infinity",
        "before_id": begin.id if begin else 0,
        "after": wanted.finished_after or "-infinity",
    }


async def _matching(
    connection: Connection, wanted: AttemptFilter, keys: Sequence[Position]
) -> list[LoggedAttempt]:
    if not keys:
        return []
    params = {**wanted.params(), "ids": [key.id for key in keys]}
    rows = await fetch_rows(connection, load_queries("attempt_log")["attempts_by_id"], params, LoggedAttempt)
    by_id = {row.id: row for row in rows}
    return [by_id[key.id] for key in keys if key.id in by_id]


def position_of(attempt: LoggedAttempt) -> Position:
    assert attempt.finished_at is not None
    return Position(attempt.finished_at.astimezone(UTC), attempt.id)


async def show_attempt(connection: Connection, attempt_id: int, *, tenant_id: str | None) -> WholeAttempt:
    """Return one attempt in any state. Raises NotFound `attempt_not_found`, also for another tenant's."""
    params = {"id": attempt_id, "tenant_id": tenant_id}
    missing = NotFound("attempt_not_found", f"there is no attempt {attempt_id}")
    query = load_queries("attempt_log")["show_attempt"]
    return await fetch_found(connection, query, params, WholeAttempt, missing)
