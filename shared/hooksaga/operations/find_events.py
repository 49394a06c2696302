"""Events by any filter, newest first. Reads only.

As in the attempt log, a page scans one index, and the number of positions scanned is bounded: if few of them match, a
page may be short or empty and still have a next one.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.attribute_search import AttributeFilter
from hooksaga.core.event_status import EventStatus
from hooksaga.operations.attempt_log import AttemptFilter, Position, list_attempts
from hooksaga.operations.requeue import DeadLetterFilter, ids_of_time
from hooksaga.operations.search import MAX_OF_VALUE, Place, events_of_text, events_with_attribute

MAX_SCANNED = 20_000
MAX_OPEN = 5_000
"""Up to this number of each kind of open work, events that wait are read from it; beyond, from the newest events."""

MAX_OF_TEXT = 500
"""Events of a text among which other filters choose."""

_MAX_STEP = 5_000


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Every field that is set must match. accepted_after is inclusive, accepted_before is not. search: a whole or
    shortened id, an idempotency key, or the value of an attribute.

    With subscription_id or error_code the times are those at which an attempt ended.
    """

    tenant_id: str | None = None
    event_type: str | None = None
    idempotency_key: str | None = None
    status: EventStatus | None = None
    subscription_id: int | None = None
    error_code: str | None = None
    accepted_after: datetime | None = None
    accepted_before: datetime | None = None
    search: str | None = None
    attribute: AttributeFilter | None = None

    @property
    def searches_attempts(self) -> bool:
        """Return whether events are found by their attempts."""
        return self.subscription_id is not None or self.error_code is not None

    @property
    def within(self) -> str:
        """How long ago an event may have been accepted, as an interval of SQL."""
        return "24 hours" if self.status is not None and self.status.is_recent_only else "infinity"

    def params(self) -> dict[str, Any]:
        """Return what an event itself is compared with."""
        return {
            **asdict(self),
            "attribute": self.attribute and self.attribute.name,
            "values": list(self.attribute.values) if self.attribute else [],
        }


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """One event with its deliveries by state; of more than a hundred, the first hundred. routed: to all of them."""

    id: int
    webhook_id: UUID
    tenant_id: str
    event_type: str
    idempotency_key: str | None
    ordering_key: str | None
    test_subscription_id: int | None
    attributes: dict[str, Any]
    created_at: datetime
    routed: bool
    deliveries: int
    completed: int
    dead: int
    open: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of events. following: the start of the next page; None after the last one."""

    items: list[FoundEvent]
    following: Position | None


async def find_events(
    connection: Connection, wanted: EventFilter, *, before: Position | None = None, limit: int = 50
) -> EventPage:
    """Find events before the position, newest first; dead ones by their newest dead letter."""
    if wanted.search is not None:
        return await _by_text(connection, wanted, wanted.search, limit)
    if wanted.searches_attempts:
        return await _by_attempts(connection, wanted, before, limit)
    query, more = await _driving_index(connection, wanted)
    found: list[tuple[Position, FoundEvent]] = []
    scanned, step = 0, limit
    while scanned < MAX_SCANNED:
        params = {**more, **_between(query, wanted, before), "limit": step}
        places = await fetch_rows(connection, load_queries("find_events")[query], params, Place)
        events = await read_events(connection, [one.event_id for one in places if one.counts], wanted)
        found += [
            (one.position, events[one.event_id]) for one in places if one.counts and one.event_id in events
        ]
        if len(found) >= limit:
            return EventPage([event for _, event in found[:limit]], found[limit - 1][0])
        if len(places) < step:
            return EventPage([event for _, event in found], None)
        before = places[-1].position
        scanned, step = scanned + step, min(step * 4, _MAX_STEP)
    return EventPage([event for _, event in found], before)


async def _driving_index(connection: Connection, wanted: EventFilter) -> tuple[str, dict[str, Any]]:
    """Choose the query that scans the narrowest index, and its own parameters."""
    tenant = {"tenant_id": wanted.tenant_id}
    within = {"within": wanted.within}
    if wanted.idempotency_key is not None:
        return "scan_key", {"idempotency_key": wanted.idempotency_key, **tenant, **within}
    if wanted.attribute is not None:
        chosen = await events_with_attribute(connection, wanted.attribute)
        if len(chosen) < MAX_OF_VALUE:
            return "scan_chosen", {"chosen": chosen, **tenant}
    if wanted.status is EventStatus.DEAD:
        failed = DeadLetterFilter(
            failed_after=wanted.accepted_after
        )  # no event is dead before it is accepted
        ids = await ids_of_time(connection, failed)
        return "scan_dead", {**tenant, "event_type": wanted.event_type, "after_id": ids.after_id}
    if wanted.status is EventStatus.WAITING and await _is_little_open(connection):
        return "scan_open_work", {"most": MAX_OPEN}
    if wanted.tenant_id is not None:
        return "scan_events_of_tenant", {**tenant, **within}
    if wanted.event_type is not None:
        return "scan_events_of_type", {"event_type": wanted.event_type, **within}
    return "scan_events", within


@dataclass(frozen=True, slots=True)
class _OpenWork:
    unrouted: int
    waiting: int
    in_progress: int


async def _is_little_open(connection: Connection) -> bool:
    query = load_queries("find_events")["count_open_work"]
    row = await fetch_one(connection, query, {"most": MAX_OPEN}, _OpenWork)
    return max(row.unrouted, row.waiting, row.in_progress) < MAX_OPEN


def _between(query: str, wanted: EventFilter, before: Position | None) -> dict[str, Any]:
    """Return the start and the end of a scan. The database has times beyond all others (infinity)."""
    if query == "scan_dead":
        return {"before_id": before and before.id}
    begin = before or (Position(wanted.accepted_before, 0) if wanted.accepted_before else None)
    return {
        "before_at": begin.finished_at if begin else "infinity",
        "before_id": begin.id if begin else 0,
        "after": wanted.accepted_after or "-infinity",
    }


async def read_events(
    connection: Connection, ids: Sequence[int], wanted: EventFilter
) -> dict[int, FoundEvent]:
    """Return those of the events that match, by their ids."""
    if not ids:
        return {}
    params = {"ids": list(ids), **wanted.params()}
    rows = await fetch_rows(connection, load_queries("find_events")["events_by_id"], params, FoundEvent)
    return {row.id: row for row in rows}


async def _by_text(connection: Connection, wanted: EventFilter, text: str, limit: int) -> EventPage:
    """Return the events that a text names: one page, with the best match first. Other filters choose among
    MAX_OF_TEXT."""
    ids = await events_of_text(connection, text, tenant_id=wanted.tenant_id, limit=max(limit, MAX_OF_TEXT))
    events = await read_events(connection, ids, wanted)
    return EventPage([events[one] for one in ids if one in events][:limit], None)


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
    query = load_queries("find_events")["event_ids"]
    rows = await fetch_rows(connection, query, {"webhook_ids": named}, _EventId)
    by_name = {row.webhook_id: row.id for row in rows}
    ids = [by_name[one] for one in named if one in by_name]
    times = EventFilter(wanted.tenant_id, idempotency_key=wanted.idempotency_key, status=wanted.status)
    events = await read_events(connection, ids, times)
    return EventPage([events[one] for one in ids if one in events], page.following)
