"""Search by what a person may have: a whole or shortened event id, an idempotency key, the value of an
attribute, or a number. Reads only."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_rows, fetch_values
from hooksaga.adapters.queries import load_queries
from hooksaga.core.attribute_search import AttributeFilter, values_of
from hooksaga.core.event_ids import IdParts, read_id_parts
from hooksaga.operations.attempt_log import Position

MAX_IDS_COMPARED = 100_000
"""Maximum number of event ids, the newest of their range, whose end is compared."""

MAX_OF_TENANT_COMPARED = 20_000
MAX_NUMBER = 2**63 - 1
MAX_OF_VALUE = 5_000
"""A value of an attribute that so many events have is common."""

FROM_THE_NEWEST = {"before_at": "infinity", "before_id": 0, "after": "-infinity"}


class Kind(StrEnum):
    """Things that have numbers."""

    SUBSCRIPTION = "subscription"
    SAGA = "saga"
    DEAD_LETTER = "dead_letter"
    ATTEMPT = "attempt"


@dataclass(frozen=True, slots=True)
class Numbered:
    """One thing with this number. webhook_id: of its event, for a saga and an attempt. label: the event type, or the
    address of a subscription."""

    kind: str
    id: int
    webhook_id: UUID | None
    tenant_id: str
    label: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """A position of a scan and the event there. counts: false where another position of the event stands for it."""

    event_id: int
    at: datetime
    place: int
    counts: bool

    @property
    def position(self) -> Position:
        return Position(self.at, self.place)


async def events_of_text(
    connection: Connection, text: str, *, tenant_id: str | None, limit: int
) -> list[int]:
    """Return ids of events that a text names: by their ids, then by idempotency key, then by the value of an attribute.
    The newest first in each."""
    found: dict[int, None] = {}
    for parts in read_id_parts(text):
        found |= dict.fromkeys(await _by_id_parts(connection, parts, tenant_id, limit))
    params = {
        "idempotency_key": text,
        "tenant_id": tenant_id,
        **FROM_THE_NEWEST,
        "within": "infinity",
        "limit": limit,
    }
    query = load_queries("find_events")["scan_key"]
    found |= dict.fromkeys(row.event_id for row in await fetch_rows(connection, query, params, Place))
    found |= dict.fromkeys(await _by_value(connection, text, tenant_id, limit))
    return list(found)[:limit]


async def _by_value(connection: Connection, text: str, tenant_id: str | None, limit: int) -> list[int]:
    """Return events with this value; of a very common one, the newest among MAX_OF_VALUE of them."""
    chosen = await events_with_attribute(connection, AttributeFilter(None, values_of(text)))
    params = {"chosen": chosen, "tenant_id": tenant_id, **FROM_THE_NEWEST, "limit": limit}
    rows = await fetch_rows(connection, load_queries("find_events")["scan_chosen"], params, Place)
    return [row.event_id for row in rows]


async def events_with_attribute(connection: Connection, attribute: AttributeFilter) -> list[int]:
    """Return the ids of events with this attribute, in no order: all, or MAX_OF_VALUE and more of a common one."""
    params = {"attribute": attribute.name, "values": list(attribute.values), "most": MAX_OF_VALUE}
    return await fetch_values(connection, load_queries("find_events")["events_with_attribute"], params)


async def _by_id_parts(
    connection: Connection, parts: IdParts, tenant_id: str | None, limit: int
) -> list[int]:
    params: dict[str, Any] = {"end": parts.end, "tenant_id": tenant_id, "limit": limit}
    query = "events_by_id_parts"
    if not parts.begin and tenant_id is not None:
        query, params = "events_of_tenant_by_end", {**params, "most": MAX_OF_TENANT_COMPARED}
    else:
        params |= {"first": parts.first, "last": parts.last, "most": MAX_IDS_COMPARED}
    return await fetch_values(connection, load_queries("search")[query], params)


async def things_of_number(connection: Connection, text: str, *, tenant_id: str | None) -> list[Numbered]:
    """Return what has this number, and may be seen by the tenant; nothing for any other text."""
    text = text.strip().removeprefix("#")
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and 0 < int(text) <= MAX_NUMBER):
        return []
    params = {"number": int(text), "tenant_id": tenant_id}
    return await fetch_rows(connection, load_queries("search")["things_by_number"], params, Numbered)
