"""The catalogue of event types: entries are stored, listed and deleted. Ingest reads them by itself."""

from dataclasses import asdict, dataclass
from datetime import datetime

import msgspec

from hooksaga.adapters.database import (
    Connection,
    fetch_found,
    fetch_one,
    fetch_rows,
    fetch_value,
    refusals,
    transaction,
)
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.event_catalogue import MAX_EVENT_TYPES, MAX_SCHEMAS_BYTES, AttributeRule, OnMismatch

MAX_NAMED = 500
"""Event types that a form offers."""


@dataclass(frozen=True, slots=True)
class EventType:
    """An entry. attributes, schema, sample: JSON text."""

    id: int
    name: str
    description: str
    attributes: str
    schema: str | None
    on_mismatch: OnMismatch
    sample: str | None
    archived: bool
    created_at: datetime
    updated_at: datetime

    @property
    def rules(self) -> list[AttributeRule]:
        return msgspec.json.decode(self.attributes, type=list[AttributeRule])


@dataclass(frozen=True, slots=True)
class PutEventType(EventType):
    """An entry that was put. created: it is new."""

    created: bool


@dataclass(frozen=True, slots=True)
class _Amounts:
    entries: int
    schema_bytes: int


@dataclass(frozen=True, slots=True)
class NamedType:
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class EventTypeContent:
    """The content of an entry. attributes: JSON text of a list; schema and sample: JSON text as it was given."""

    description: str = ""
    attributes: str = "[]"
    schema: str | None = None
    on_mismatch: OnMismatch = "reject"
    sample: str | None = None
    archived: bool = False


async def put_event_type(connection: Connection, name: str, content: EventTypeContent) -> PutEventType:
    """Store the entry in place of the one with this name, if there is one. The caller has checked name and content.

    Raises Conflict `catalogue_full` for one entry too many, or for schemas that are too large together.
    """
    queries = load_queries("event_types")
    params = {"name": name, **asdict(content)}
    async with refusals(), transaction(connection):
        others = await fetch_one(connection, queries["other_event_types"], params, _Amounts)
        if others.entries >= MAX_EVENT_TYPES:
            raise Conflict(
                "catalogue_full", f"the catalogue has {MAX_EVENT_TYPES} event types, the most it can have"
            )
        if others.schema_bytes + len((content.schema or "").encode()) > MAX_SCHEMAS_BYTES:
            raise Conflict(
                "catalogue_full", f"all schemas together must have at most {MAX_SCHEMAS_BYTES} bytes"
            )
        return await fetch_one(connection, queries["put_event_type"], params, PutEventType)


async def show_event_type(connection: Connection, name: str) -> EventType:
    """Return one entry. Raises NotFound `event_type_not_found`."""
    query = load_queries("event_types")["show_event_type"]
    return await fetch_found(connection, query, {"name": name}, EventType, missing(name))


def missing(name: str) -> NotFound:
    return NotFound("event_type_not_found", f"there is no event type {name[:100]} in the catalogue")


async def list_event_types(
    connection: Connection, *, archived: bool | None = None, before_id: int | None = None, limit: int = 50
) -> list[EventType]:
    """List entries with an id below before_id, newest first."""
    params = {"archived": archived, "before_id": before_id, "limit": limit}
    return await fetch_rows(connection, load_queries("event_types")["list_event_types"], params, EventType)


async def name_event_types(connection: Connection, *, limit: int = MAX_NAMED) -> list[NamedType]:
    """Return the names and descriptions of the types that take events, by name."""
    return await fetch_rows(
        connection, load_queries("event_types")["name_event_types"], {"limit": limit}, NamedType
    )


async def delete_event_type(connection: Connection, name: str) -> None:
    """Delete an entry; events and subscriptions of the type stay. Raises NotFound `event_type_not_found`."""
    query = load_queries("event_types")["delete_event_type"]
    if await fetch_value(connection, query, {"name": name}) is None:
        raise missing(name)


async def sample_of_type(connection: Connection, name: str) -> str | None:
    """Return the sample payload of a type, as JSON text."""
    return await fetch_value(connection, load_queries("event_types")["sample_of_type"], {"name": name})
