"""Pages of a tenant's subscriptions for one event, in the order of `explain`."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries

WALKED_AT_ONCE = 250
MAX_WALKED = 1000
"""Subscriptions scanned for one response: it may end early, with `next`, when most of them were shown before."""


class Rank(IntEnum):
    """Display order of subscriptions: those with a saga, those that ever matched the type, the others."""

    STARTED = 0
    OF_TYPE = 1
    OTHERS = 2


_WALKS = {Rank.STARTED: "walk_started", Rank.OF_TYPE: "walk_of_type", Rank.OTHERS: "walk_others"}


@dataclass(frozen=True, slots=True)
class Place:
    """End of a page: after this subscription of this rank."""

    rank: Rank = Rank.STARTED
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """An event, and the last rank of subscriptions to show."""

    event_id: int
    tenant_id: str
    event_type: str
    last: Rank


@dataclass(frozen=True, slots=True)
class _Walked:
    id: int
    fits: bool


async def find_page(
    connection: Connection, subject: Subject, place: Place, limit: int
) -> tuple[list[int], Place | None]:
    """Return at most `limit` subscriptions after the place, and the place to continue from."""
    found: list[int] = []
    walked = 0
    while place.rank <= subject.last:
        rows = await _walk(connection, subject, place)
        for row in rows:
            if row.fits and len(found) == limit:
                return found, place
            found += [row.id] if row.fits else []
            place = Place(place.rank, row.id)
        walked += len(rows)
        if len(rows) < WALKED_AT_ONCE:
            if place.rank == subject.last:
                break
            place = Place(Rank(place.rank + 1))
        elif walked >= MAX_WALKED:
            return found, place
    return found, None


async def _walk(connection: Connection, subject: Subject, place: Place) -> list[_Walked]:
    params: dict[str, Any] = {
        "event_id": subject.event_id,
        "tenant_id": subject.tenant_id,
        "event_type": subject.event_type,
        "after_id": place.after_id,
        "limit": WALKED_AT_ONCE,
    }
    return await fetch_rows(connection, load_queries("explain")[_WALKS[place.rank]], params, _Walked)
