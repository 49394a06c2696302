"""Events to sagas: one saga for each matching subscription, exactly once (r04 §3).

The router never reads payloads, makes jobs or moves sagas; its role cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.adapters.database import Connection, fetch_row
from shared.adapters.queries import load_queries

MAX_EVENTS = 500
MAX_SAGAS = 20_000


@dataclass(frozen=True, slots=True)
class Routed:
    """The events that left the outbox, and the sagas that were started. One event can have none."""

    event_ids: list[int] = field(default_factory=list[int])
    saga_ids: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class _RoutedRow:
    event_ids: list[int] | None
    saga_ids: list[int] | None


async def route_events(
    connection: Connection,
    *,
    event_ids: Sequence[int] | None = None,
    max_events: int = MAX_EVENTS,
    max_sagas: int = MAX_SAGAS,
) -> Routed:
    """Route one batch of waiting events: those named, or the oldest. Nothing waiting gives empty lists.

    A batch stops growing once it has started `max_sagas`, so call again until event_ids comes back empty.
    """
    row = await fetch_row(
        connection,
        load_queries("route_events")["route_outbox"],
        {
            "event_ids": None if event_ids is None else list(event_ids),
            "max_events": max_events,
            "max_sagas": max_sagas,
        },
        _RoutedRow,
    )
    return Routed(row.event_ids or [], row.saga_ids or []) if row else Routed()
