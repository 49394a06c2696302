"""Route events: start one saga per matching subscription, exactly once.

The router never reads payloads, creates jobs or moves sagas; its database role has no right to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.trace import correlation_id_of
from hooksaga.stages.batches import OnRefusal, pass_refused

MAX_EVENTS = 500
MAX_SAGAS = 2_000
WIDE_FROM = 500
"""An event with more matching subscriptions is routed in parts."""

PART_SIZE = 500


class RoutedEvent(msgspec.Struct, frozen=True):
    """An event, its age since acceptance, and its new sagas, possibly none.

    whole: the event has left the outbox; otherwise this was a part, and the next part continues after it.
    more: the batch reached its limit of sagas, so other waiting events are left for the next batch.
    """

    id: int
    webhook_id: UUID
    traceparent: str | None
    delay_ms: float
    saga_ids: list[int]
    subscription_ids: list[int]
    whole: bool = True
    more: bool = False

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


@dataclass(frozen=True, slots=True)
class Routed:
    events: list[RoutedEvent] = field(default_factory=list[RoutedEvent])

    @property
    def event_ids(self) -> list[int]:
        return [event.id for event in self.events]

    @property
    def saga_ids(self) -> list[int]:
        return [saga_id for event in self.events for saga_id in event.saga_ids]

    @property
    def traces(self) -> dict[int, str]:
        """The subscriptions that have new sagas, each with the trace of the first event."""
        return {
            subscription_id: event.correlation_id
            for event in reversed(self.events)
            for subscription_id in event.subscription_ids
        }


@dataclass(frozen=True, slots=True)
class _Waiting:
    id: int
    webhook_id: UUID
    traceparent: str | None

    def refused_row(self) -> RefusedRow:
        correlation_id = correlation_id_of(self.webhook_id, self.traceparent)
        return RefusedRow(event_id=event_id_text(self.webhook_id), correlation_id=correlation_id)


@dataclass(frozen=True, slots=True)
class _Age:
    seconds: float


async def route_events(
    connection: Connection,
    *,
    event_ids: Sequence[int] | None = None,
    max_events: int = MAX_EVENTS,
    max_sagas: int = MAX_SAGAS,
    wide_from: int = WIDE_FROM,
    part_size: int = PART_SIZE,
    go_on: bool = True,
    on_refusal: OnRefusal = lambda _row: None,
) -> Routed:
    """Route one batch of waiting events: the named ones, or the oldest. Returns empty lists when nothing waits.

    A batch stops growing once it has started `max_sagas`. Of an event with more than `wide_from` matching
    subscriptions it starts `part_size` sagas; part_size is at most wide_from. So call again until no events are
    returned. Without `go_on`, partly routed events are skipped. An event whose routing the database rejects is reported
    to on_refusal and stays in the outbox.
    """
    queries = load_queries("route_events")
    waiting = {
        "event_ids": None if event_ids is None else list(event_ids),
        "max_events": max_events,
        "go_on": go_on,
    }
    sizes = {"max_sagas": max_sagas, "wide_from": wide_from, "part_size": part_size}

    async def route(ids: Sequence[int] | None) -> list[RoutedEvent]:
        named = {} if ids is None else {"event_ids": list(ids)}
        params = {**waiting, **sizes, **named}
        return await fetch_rows(connection, queries["route_outbox"], params, RoutedEvent)

    async def look() -> dict[int, RefusedRow]:
        rows = await fetch_rows(connection, queries["waiting_events"], waiting, _Waiting)
        return {row.id: row.refused_row() for row in rows}

    return Routed(await pass_refused(route, look, on_refusal))


async def outbox_age_seconds(connection: Connection) -> float:
    """Return for how many seconds the first event in the outbox has waited; 0 when all are routed."""
    row = await fetch_row(connection, load_queries("route_events")["outbox_age"], {}, _Age)
    return max(0.0, row.seconds) if row else 0.0
