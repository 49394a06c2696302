"""Store incoming events: one statement per batch, one result per event, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from hooksaga.adapters.database import Connection, fetch_rows, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import (
    Conflict,
    DatabaseUnavailable,
    HooksagaError,
    InvalidInput,
    RowRefused,
    ValueRefused,
)
from hooksaga.core.event_input import EventDraft
from hooksaga.core.trace import Traced, correlation_id_of
from hooksaga.stages.batches import run_isolating


class AcceptedEvent(msgspec.Struct, frozen=True):
    """An accepted event. `duplicate`: key and content match an earlier event; the other fields are that event's."""

    id: int
    webhook_id: UUID
    event_type: str
    created_at: datetime
    duplicate: bool = False
    traceparent: str | None = None

    @property
    def traced(self) -> Traced:
        return Traced(self.id, correlation_id_of(self.webhook_id, self.traceparent))


class _InsertedRow(msgspec.Struct, frozen=True):
    position: int
    id: int
    webhook_id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class _KnownRow:
    position: int
    id: int
    webhook_id: UUID
    created_at: datetime
    traceparent: str | None
    same_content: bool


Answer = AcceptedEvent | HooksagaError


async def accept_events(
    connection: Connection, drafts: Sequence[EventDraft], *, in_order: bool = False
) -> list[Answer]:
    """Store the drafts and return one result per draft. in_order: their ids increase in the order of the drafts.

    A result is an AcceptedEvent, or the error that rejected this draft alone: Conflict `idempotency_conflict`
    for a known key with different content, InvalidInput `event_refused` for a payload that the database rejects,
    DatabaseUnavailable for an event that the database rejects for another reason.
    When this returns, all accepted events are committed; when it raises, a retry with the same keys is safe.
    """
    if not drafts:
        return []

    async def store(batch: Sequence[EventDraft]) -> list[Answer]:
        async with refusals():
            answers = await insert_events(connection, batch, in_order=in_order)
        missing = [position for position in range(1, len(batch) + 1) if position not in answers]
        if missing:
            answers |= await _answer_known(connection, batch, missing)
        return [answers[position] for position in range(1, len(batch) + 1)]

    return await run_isolating(store, drafts, _refusal)


def _refusal(_draft: EventDraft, error: RowRefused) -> Answer:
    if isinstance(error, ValueRefused):
        return InvalidInput("event_refused", "the database rejects this payload", field="payload", status=422)
    unstored = DatabaseUnavailable("the database did not store this event; repeat the request")
    unstored.__cause__ = error
    return unstored


async def insert_events(
    connection: Connection, drafts: Sequence[EventDraft], *, in_order: bool = False
) -> dict[int, Answer]:
    """Store the drafts and return new events by position from 1, in order. Positions with a known key are absent."""
    query = load_queries("accept_events")["insert_events"]
    params = {**_columns(drafts), "in_order": in_order}
    inserted = await fetch_rows(connection, query, params, _InsertedRow)
    rows = sorted(inserted, key=lambda row: row.position)
    return {row.position: _accepted(row, drafts[row.position - 1]) for row in rows}


def _accepted(row: _InsertedRow, draft: EventDraft) -> AcceptedEvent:
    return AcceptedEvent(
        row.id, row.webhook_id, draft.event_type, row.created_at, traceparent=draft.traceparent
    )


async def _answer_known(
    connection: Connection, drafts: Sequence[EventDraft], positions: Sequence[int]
) -> dict[int, Answer]:
    known = await fetch_rows(
        connection,
        load_queries("accept_events")["find_events_by_key"],
        {**_columns([drafts[position - 1] for position in positions]), "positions": list(positions)},
        _KnownRow,
    )
    return {row.position: _answer_to_repeat(row, drafts[row.position - 1]) for row in known}


def _answer_to_repeat(row: _KnownRow, draft: EventDraft) -> Answer:
    if row.same_content:
        first = (row.id, row.webhook_id, draft.event_type, row.created_at)
        return AcceptedEvent(*first, duplicate=True, traceparent=row.traceparent)
    return Conflict("idempotency_conflict", "this idempotency key was already used for a different event")


def _columns(drafts: Sequence[EventDraft]) -> dict[str, list[str] | list[str | None] | list[int | None]]:
    return {
        "tenant_ids": [draft.tenant_id for draft in drafts],
        "event_types": [draft.event_type for draft in drafts],
        "sources": [draft.source for draft in drafts],
        "external_ids": [draft.external_id for draft in drafts],
        "payloads": [draft.payload for draft in drafts],
        "traceparents": [draft.traceparent for draft in drafts],
        "ordering_keys": [draft.ordering_key for draft in drafts],
        "attributes": [draft.attributes for draft in drafts],
        "cloud_events": [draft.cloud_event for draft in drafts],
        "test_subscription_ids": [draft.test_subscription_id for draft in drafts],
    }
