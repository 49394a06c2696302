"""The catalogue of event types in the memory of a process that accepts events.

Each statement that stores events compares the revision (accept_events.sql). So a lone event costs no round trip for its
type, and no event is stored by a catalogue that has changed.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_catalogue import (
    NOTHING,
    AttributeRule,
    Checked,
    KnownType,
    OnMismatch,
    PayloadSchema,
    SchemaCompiler,
    check_event,
    unknown_type,
)
from hooksaga.core.event_input import EventDraft
from hooksaga.core.schema_bounds import InvalidSchema
from hooksaga.runtime.telemetry import logger

NO_ENTRIES = UUID(int=0)
"""Revision of a catalogue that never had an entry."""

MAX_EXPLAINED = 5
"""Unknown types of a batch for which similar ones are searched."""


class _Row(msgspec.Struct, frozen=True):
    """An entry with the revision; all other fields are null if there is no entry."""

    revision: UUID
    name: str | None
    attributes: str | None
    schema: str | None
    on_mismatch: OnMismatch | None
    archived: bool | None


class EventCatalogue:
    """The entries as of one revision. Begins empty, which most databases are.

    compile_schema: given by processes that accept events, because the library is large. Without it no payload is
    checked.
    """

    def __init__(self, compile_schema: SchemaCompiler | None = None, *, reject_unknown: bool = False) -> None:
        self._compile_schema = compile_schema
        self._reject_unknown = reject_unknown
        self._types: dict[str, KnownType] = {}
        self._schemas: dict[str, PayloadSchema | None] = {}
        self.revision = NO_ENTRIES

    async def load(self, connection: Connection) -> bool:
        """Read the entries; return whether the revision was another one. A schema is compiled when it is new."""
        query = load_queries("event_types")["known_event_types"]
        rows = await fetch_rows(connection, query, {"known": self.revision}, _Row)
        revision = rows[0].revision
        if revision == self.revision:
            return False
        texts = {row.schema for row in rows if row.schema is not None}
        self._schemas = {text: self._schemas.get(text) or self._compiled(text) for text in texts}
        self._types = {row.name: self._known(row.name, row) for row in rows if row.name is not None}
        self.revision = revision
        return True

    def _known(self, name: str, row: _Row) -> KnownType:
        return KnownType(
            name,
            tuple(msgspec.json.decode(row.attributes or "[]", type=list[AttributeRule])),
            None if row.schema is None else self._schemas[row.schema],
            row.on_mismatch or "reject",
            bool(row.archived),
        )

    def _compiled(self, text: str) -> PayloadSchema | None:
        """Return the schema; None for one that only SQL can have stored, which the API refuses."""
        try:
            return None if self._compile_schema is None else self._compile_schema(text)
        except InvalidSchema as error:
            logger.error("event type schema ignored", extra={"reason": f"{error.path}: {error}"})
            return None

    def check(self, drafts: Sequence[EventDraft]) -> list[Checked | InvalidInput]:
        """Return what follows from the type of each event, or the error that refuses it."""
        explained = 0
        results: list[Checked | InvalidInput] = []
        for draft in drafts:
            known = self._types.get(draft.event_type)
            if known is None and self._reject_unknown:
                names = self._types.keys() if explained < MAX_EXPLAINED else ()
                explained += 1
                results.append(unknown_type(draft.event_type, names))
            else:
                results.append(NOTHING if known is None else _checked(known, draft))
        return results


def _checked(known: KnownType, draft: EventDraft) -> Checked | InvalidInput:
    try:
        return check_event(known, draft.payload)
    except InvalidInput as error:
        return error
