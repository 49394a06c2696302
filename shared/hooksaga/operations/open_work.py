"""Work that has not ended: events without routing, deliveries that are due, wait for a retry or are in flight.

Each kind is counted and listed on an index that holds only open work, up to MAX_COUNTED rows. Reads only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.counts import MAX_COUNTED, Count


class OpenState(StrEnum):
    """UNROUTED: an event without routing. DUE: a delivery whose next attempt should have begun. RETRYING: one that
    failed and waits for its time. IN_FLIGHT: one whose attempt is being made."""

    UNROUTED = "not routed"
    DUE = "due"
    RETRYING = "waiting for a retry"
    IN_FLIGHT = "in flight"


_QUERIES = {
    OpenState.UNROUTED: "unrouted_events",
    OpenState.DUE: "due_sagas",
    OpenState.RETRYING: "retrying_sagas",
    OpenState.IN_FLIGHT: "leased_sagas",
}


@dataclass(frozen=True, slots=True)
class OpenRow:
    """An event, and its delivery if it is routed. at: accepted, due, or claimed, by the state."""

    webhook_id: UUID
    event_type: str
    tenant_id: str
    saga_id: int | None
    subscription_id: int | None
    status: str | None
    attempt_count: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class _Counts:
    unrouted: int
    scanned: int
    retrying: int
    in_flight: int


def counted(value: int) -> Count:
    """Return the count of rows that were counted up to MAX_COUNTED."""
    return Count(value, at_least=value >= MAX_COUNTED)


async def count_open_work(
    connection: Connection, subscription_id: int | None = None
) -> dict[OpenState, Count]:
    """Count each state, of all subscriptions or of one; events without routing belong to none."""
    params = {**_range(subscription_id), "most": MAX_COUNTED}
    row = await fetch_one(connection, load_queries("console")["count_open_work"], params, _Counts)
    due = await fetch_value(connection, load_queries("console")["count_due"], params)
    return {
        OpenState.UNROUTED: counted(row.unrouted),
        OpenState.DUE: counted(due),
        OpenState.RETRYING: Count(row.retrying, at_least=row.scanned >= MAX_COUNTED),
        OpenState.IN_FLIGHT: counted(row.in_flight),
    }


async def list_open_work(
    connection: Connection, state: OpenState, *, subscription_id: int | None = None, limit: int = 50
) -> Sequence[OpenRow]:
    """Return the rows of a state that have waited longest, among those that are counted."""
    params = {**_range(subscription_id), "most": MAX_COUNTED, "limit": limit}
    return await fetch_rows(connection, load_queries("console")[_QUERIES[state]], params, OpenRow)


def _range(subscription_id: int | None) -> dict[str, int]:
    """Return a range of ids: with equality, or none, one statement would have two plans."""
    if subscription_id is None:
        return {"first": 0, "last": 2**63 - 1}
    return {"first": subscription_id, "last": subscription_id}
