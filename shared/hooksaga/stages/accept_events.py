"""Store incoming events: one statement per batch, one result per event, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec
from msgspec.structs import replace

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
from hooksaga.core.event_catalogue import Checked, Mismatch
from hooksaga.core.event_input import EventDraft
from hooksaga.core.trace import Traced, correlation_id_of
from hooksaga.stages.batches import run_isolating
from hooksaga.stages.event_catalogue import EventCatalogue


class AcceptedEvent(msgspec.Struct, frozen=True):
    """An accepted event. `duplicate`: key and content match an earlier event; the other fields are that event's.
    warning: where its payload does not match the schema of its type."""

    id: int
    webhook_id: UUID
    event_type: str
    created_at: datetime
    duplicate: bool = False
    traceparent: str | None = None
    warning: Mismatch | None = None

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

MAX_REVISIONS = 5
"""How often events are checked again because the catalogue has changed meanwhile."""


async def accept_events(
    connection: Connection,
    drafts: Sequence[EventDraft],
    *,
    in_order: bool = False,
    catalogue: EventCatalogue | None = None,
) -> list[Answer]:
    """Store the drafts and return one result per draft. in_order: their ids increase in the order of the drafts.
    catalogue: what this process knows of event types; None: nothing yet.

    A result is an AcceptedEvent, or the error that rejected this draft alone: Conflict `idempotency_conflict`
    for a known key with different content, InvalidInput `event_refused` for a payload that the database rejects,
    `payload_mismatch`, `event_type_archived` or `unknown_event_type` for an event that its type does not allow,
    DatabaseUnavailable for an event that the database rejects for another reason.
    When this returns, all accepted events are committed; when it raises, a retry with the same keys is safe.
    """
    if not drafts:
        return []

    known_types = EventCatalogue() if catalogue is None else catalogue

    async def store(batch: Sequence[EventDraft]) -> list[Answer]:
        checked, answers = await _checked_and_stored(connection, batch, known_types, in_order=in_order)
        missing = [position for position in range(1, len(batch) + 1) if position not in answers]
        keyed = [position for position in missing if batch[position - 1].external_id is not None]
        if keyed:
            answers |= await _answer_known(connection, batch, keyed)
        return [_answer(answers.get(at), result) for at, result in enumerate(checked, start=1)]

    return await run_isolating(store, drafts, _refusal)


async def _checked_and_stored(
    connection: Connection, batch: Sequence[EventDraft], catalogue: EventCatalogue, *, in_order: bool
) -> tuple[list[Checked | InvalidInput], dict[int, Answer]]:
    """Check the drafts by the current catalogue, and store those that pass; return the results of both."""
    for _ in range(MAX_REVISIONS):
        checked = catalogue.check(batch)
        passed = {at: one for at, one in enumerate(checked, start=1) if isinstance(one, Checked)}
        drafts = [_with_extracted(batch[at - 1], one) for at, one in passed.items()]
        async with refusals():
            stored = (
                await insert_events(connection, drafts, in_order=in_order, revision=catalogue.revision)
                if drafts
                else {}
            )
        if stored is not None and (drafts or not await catalogue.load(connection)):
            places = list(passed)
            return checked, {places[at - 1]: answer for at, answer in stored.items()}
        if stored is None:
            await catalogue.load(connection)
    raise DatabaseUnavailable("the catalogue of event types keeps changing; repeat the request")


def _with_extracted(draft: EventDraft, checked: Checked) -> EventDraft:
    return draft if checked.extracted == draft.extracted else replace(draft, extracted=checked.extracted)


def _answer(answer: Answer | None, checked: Checked | InvalidInput) -> Answer:
    """Return the answer of one draft. A repeat gets its first answer, even if its type would refuse it by now."""
    if isinstance(checked, InvalidInput):
        return answer if isinstance(answer, AcceptedEvent) else checked
    assert answer is not None
    if checked.warning is None or not isinstance(answer, AcceptedEvent):
        return answer
    return replace(answer, warning=checked.warning)


def _refusal(_draft: EventDraft, error: RowRefused) -> Answer:
    if isinstance(error, ValueRefused):
        return InvalidInput("event_refused", "the database rejects this payload", field="payload", status=422)
    unstored = DatabaseUnavailable("the database did not store this event; repeat the request")
    unstored.__cause__ = error
    return unstored


async def insert_events(
    connection: Connection,
    drafts: Sequence[EventDraft],
    *,
    in_order: bool = False,
    revision: UUID | None = None,
) -> dict[int, Answer] | None:
    """Store the drafts and return new events by position from 1, in order. Positions with a known key are absent.

    revision: that of the catalogue by which they were checked. None is returned, and nothing is stored, if it is no
    longer the current one.
    """
    query = load_queries("accept_events")["insert_events"]
    params = {**_columns(drafts), "in_order": in_order, "revision": revision}
    inserted = await fetch_rows(connection, query, params, _InsertedRow)
    rows = sorted(inserted, key=lambda row: row.position)
    if rows and rows[0].position == 0:
        return None
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
        "extracted": [draft.extracted for draft in drafts],
        "test_subscription_ids": [draft.test_subscription_id for draft in drafts],
    }
