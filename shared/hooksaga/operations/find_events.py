"""Events by type, tenant and time, and those whose deliveries to a subscription, or with an error code, have ended.
Reads only.

As in the attempt log, a page scans one index, and the number of keys scanned is bounded: if few of them match, a page
may be short or empty and still have a next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.operations.attempt_log import AttemptFilter, Position, list_attempts

MAX_SCANNED = 20_000
_LARGEST_STEP = 5_000


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Every field that is set must match. accepted_after is inclusive, accepted_before is not.

    With subscription_id or error_code the times are those at which an attempt ended.
    """

    tenant_id: str | None = None
    event_type: str | None = None
    subscription_id: int | None = None
    error_code: str | None = None
    accepted_after: datetime | None = None
    accepted_before: datetime | None = None

    @property
    def searches_attempts(self) -> bool:
        """Return whether events are found by their attempts."""
        return self.subscription_id is not None or self.error_code is not None


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """One event with its deliveries by state; of more than a hundred, the first hundred."""

    id: int
    webhook_id: UUID
    tenant_id: str
    event_type: str
    created_at: datetime
    deliveries: int
    completed: int
    dead: int
    open: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of events. following: the start of the next page; None after the last one."""

    items: list[FoundEvent]
    following: Position | None


@dataclass(frozen=True, slots=True)
class _Accepted:
    id: int
    created_at: datetime


async def find_events(
    connection: Connection, wanted: EventFilter, *, before: Position | None = None, limit: int = 50
) -> EventPage:
    """Find events before the position, newest first."""
    if wanted.searches_attempts:
        return await _by_attempts(connection, wanted, before, limit)
    found: list[FoundEvent] = []
    scanned, step = 0, limit
    while scanned < MAX_SCANNED:
        keys = await _scan(connection, wanted, before, step)
        found += await _events(connection, [key.id for key in keys], wanted.tenant_id)
        if len(found) >= limit:
            last = found[limit - 1]
            return EventPage(found[:limit], Position(last.created_at, last.id))
        if len(keys) < step:
            return EventPage(found, None)
        before = keys[-1]
        scanned, step = scanned + step, min(step * 4, _LARGEST_STEP)
    return EventPage(found, before)


async def _scan(
    connection: Connection, wanted: EventFilter, before: Position | None, limit: int
) -> list[Position]:
    latest = Position(wanted.accepted_before, 0) if wanted.accepted_before else None
    begin = before or latest
    params: dict[str, Any] = {
        "before_at": begin.finished_at if begin else "infinity",
        "before_id": begin.id if begin else 0,
        "after": wanted.accepted_after or "-infinity",
        "limit": limit,
    }
    query = "scan_events"
    if wanted.event_type is not None:
        query, params = "scan_events_of_type", {**params, "event_type": wanted.event_type}
    rows = await fetch_rows(connection, load_queries("console")[query], params, _Accepted)
    return [Position(row.created_at, row.id) for row in rows]


async def _events(connection: Connection, ids: Sequence[int], tenant_id: str | None) -> list[FoundEvent]:
    """Return the events that the tenant may see, in the order of the ids."""
    if not ids:
        return []
    params = {"ids": list(ids), "tenant_id": tenant_id}
    rows = await fetch_rows(connection, load_queries("console")["events_by_id"], params, FoundEvent)
    by_id = {row.id: row for row in rows}
    return [by_id[one] for one in ids if one in by_id]


@dataclass(frozen=True, slots=True)
class _EventId:
    id: int
    webhook_id: UUID


async def _by_attempts(
    connection: Connection, wanted: EventFilter, before: Position | None, limit: int
) -> EventPage:
    """Return each event once per page, at the position of its newest matching attempt."""
    attempts = AttemptFilter(
        tenant_id=wanted.tenant_id,
        subscription_id=wanted.subscription_id,
        event_type=wanted.event_type,
        error_code=wanted.error_code,
        finished_after=wanted.accepted_after,
        finished_before=wanted.accepted_before,
    )
    page = await list_attempts(connection, attempts, before=before, limit=limit)
    named = list(dict.fromkeys(item.webhook_id for item in page.items))
    params = {"webhook_ids": named}
    rows = await fetch_rows(connection, load_queries("console")["event_ids"], params, _EventId)
    by_name = {row.webhook_id: row.id for row in rows}
    ids = [by_name[one] for one in named if one in by_name]
    return EventPage(await _events(connection, ids, wanted.tenant_id), page.following)
