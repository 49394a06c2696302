"""Reads of events with their sagas and attempts, dead letters, and the backlog."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_found, fetch_one, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.cloud_event_output import DeliveryFormat
from hooksaga.core.errors import NotFound
from hooksaga.core.trace import Traced, correlation_id_of
from hooksaga.operations.attempt_log import AttemptRow
from hooksaga.operations.missing_event import missing_event
from hooksaga.operations.waiting_sagas import WAITING, Waiting, waiting_of

MAX_SAGAS_SHOWN = 1000
MAX_ATTEMPTS_SHOWN = 1000
MAX_ANSWER_SHOWN = 1000
"""Characters shown of each response body. An event is one response of the API, for which AWS accepts 6 MB."""


@dataclass(frozen=True, slots=True)
class Attempt(AttemptRow):
    """One attempt of an event that is shown."""

    response_body: str | None
    response_truncated: bool
    retry_after_seconds: int | None
    own_header_names: str | None
    sent_format: DeliveryFormat | None


@dataclass(frozen=True, slots=True)
class SagaView:
    """One saga with its attempts, oldest first. waiting: what it waits for; None when it does not wait."""

    id: int
    subscription_id: int
    status: str
    attempt_count: int
    next_attempt_at: datetime
    final_error_code: str | None
    requeued_from: int | None
    resent_from: int | None
    bulk_operation_id: int | None
    created_at: datetime
    waiting: Waiting | None = None
    attempts: list[Attempt] = field(default_factory=list[Attempt])


@dataclass(frozen=True, slots=True)
class EventView:
    """One event with its sagas, oldest first, at most MAX_SAGAS_SHOWN, and MAX_ATTEMPTS_SHOWN of theirs.

    payload is JSON text to the byte; None since payload_removed_at. is_erased: by an erasure, not by its age.
    attributes, extracted_attributes: JSON text. cloud_event: what it is as a CloudEvent (cloud_event_of).

    pruned_before: of this event's deliveries, Completed ones that ended before it may have been deleted, and the
    attempts of all that did. None when nothing can be missing.
    """

    id: int
    webhook_id: UUID
    traceparent: str | None
    tenant_id: str
    event_type: str
    test_subscription_id: int | None
    created_at: datetime
    ordering_key: str | None
    attributes: str
    extracted_attributes: str
    payload: str | None
    cloud_event: str
    payload_removed_at: datetime | None = None
    is_erased: bool = False
    pruned_before: datetime | None = None
    sagas: list[SagaView] = field(default_factory=list[SagaView])

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


@dataclass(frozen=True, slots=True)
class DeadLetterView:
    """One dead letter. requeued_as: the saga that a requeue started. stands: as in DeadLetterFilter. payload_snapshot:
    set only for a single one, and None since payload_removed_at."""

    id: int
    saga_id: int
    webhook_id: UUID
    subscription_id: int
    tenant_id: str
    event_type: str
    final_error_code: str | None
    reason: str | None
    failed_at: datetime
    requeued_as: int | None
    stands: bool
    payload_removed_at: datetime | None = None
    is_erased: bool = False
    payload_snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """Current backlog. oldest_due_seconds is null when nothing waits, retention_behind_seconds when everything is kept
    for ever."""

    outbox: int
    sagas_waiting: int
    sagas_due: int
    jobs_pending: int
    jobs_leased: int
    results_unapplied: int
    dead_letters_24h: int
    oldest_due_seconds: float | None
    delivered_last_minute: int
    retention_behind_seconds: float | None


async def show_event(
    connection: Connection, webhook_id: UUID, *, tenant_id: str | None, most_sagas: int = MAX_SAGAS_SHOWN
) -> EventView:
    """Return one event. Raises NotFound `event_not_found`, also for another tenant's."""
    queries = load_queries("inspect")
    params = {"webhook_id": webhook_id, "tenant_id": tenant_id}
    event = await fetch_row(connection, queries["show_event"], params, EventView)
    if event is None:
        raise await missing_event(connection, webhook_id)
    wanted = {"event_id": event.id, "limit": most_sagas}
    sagas = await fetch_rows(connection, queries["sagas_of_event"], wanted, SagaView)
    waiting = await waiting_of(connection, [saga.id for saga in sagas if saga.status in WAITING])
    event.sagas.extend(replace(saga, waiting=waiting.get(saga.id)) for saga in sagas)
    by_id = {saga.id: saga for saga in event.sagas}
    found = {
        "saga_ids": list(by_id),
        "limit": MAX_ATTEMPTS_SHOWN,
        "most_characters": MAX_ANSWER_SHOWN,
    }
    for attempt in await fetch_rows(connection, queries["attempts_of_sagas"], found, Attempt):
        by_id[attempt.saga_id].attempts.append(attempt)
    return event


@dataclass(frozen=True, slots=True)
class SagaState:
    id: int
    status: str
    final_error_code: str | None
    webhook_id: UUID
    traceparent: str | None

    @property
    def traced(self) -> Traced:
        return Traced(self.id, correlation_id_of(self.webhook_id, self.traceparent))


async def show_saga_state(connection: Connection, saga_id: int, *, tenant_id: str | None) -> SagaState:
    """Return the state of one saga. Raises NotFound `saga_not_found`, also for another tenant's."""
    params = {"id": saga_id, "tenant_id": tenant_id}
    missing = NotFound("saga_not_found", f"there is no saga {saga_id}")
    return await fetch_found(connection, load_queries("inspect")["show_saga"], params, SagaState, missing)


async def show_dead_letter(
    connection: Connection, dead_letter_id: int, *, tenant_id: str | None
) -> DeadLetterView:
    """Return one dead letter with its payload. Raises NotFound `dead_letter_not_found`, also for another tenant's."""
    params = {"id": dead_letter_id, "tenant_id": tenant_id}
    missing = NotFound("dead_letter_not_found", f"there is no dead letter {dead_letter_id}")
    query = load_queries("inspect")["show_dead_letter"]
    return await fetch_found(connection, query, params, DeadLetterView, missing)


async def read_stats(connection: Connection) -> Stats:
    """Count open work only; an index serves each count."""
    return await fetch_one(connection, load_queries("inspect")["stats"], {}, Stats)


async def check_alive(connection: Connection) -> None:
    """Return when the database answers; Session turns every failure into DatabaseUnavailable."""
    await connection.execute(load_queries("inspect")["check_alive"])
