"""Answers about events: accepted ones, and one with its sagas, their attempts and its routing."""

from typing import Annotated, Any

from msgspec import Meta

from hooksaga.api.answers.answer import (
    AcceptedAt,
    Answer,
    BulkOperationId,
    Count,
    ErrorCode,
    EventType,
    OwnEventId,
    Payload,
    RequeuedFrom,
    RowId,
    SagaState,
    SubscriptionId,
    TenantId,
    Time,
    either,
    said,
)
from hooksaga.api.answers.attempts import Attempt
from hooksaga.api.answers.problems import ItemProblem
from hooksaga.api.answers.routing import Routing


class AcceptedEvent(Answer):
    """An event that is stored and will be delivered."""

    id: OwnEventId
    event_type: EventType
    created_at: AcceptedAt
    duplicate: Annotated[
        bool, said("Whether the idempotency key was used before: then this is the first answer.", False)
    ]


class RefusedEvent(Answer):
    """An item of a batch that was refused."""

    error: Annotated[ItemProblem, said("What is wrong with it.")]


class BatchAnswer(Answer):
    """What became of each event of a batch."""

    items: Annotated[
        list[Annotated[Any, either(AcceptedEvent, RefusedEvent)]],
        said("One answer for each item, in order: an accepted event, or `{error}`."),
    ]


class Saga(Answer):
    """One event on its way to one subscription."""

    id: Annotated[RowId, said("The number that names it.", 4711)]
    subscription_id: SubscriptionId
    status: SagaState
    attempt_count: Annotated[Count, said("Attempts that have ended.", 1)]
    next_attempt_at: Annotated[Time, said("When the next attempt is due.", "2026-03-14T09:26:53.601000Z")]
    final_error_code: Annotated[
        ErrorCode | None, said("The word of the last failure; kept after a later success.", None)
    ]
    requeued_from: RequeuedFrom
    bulk_operation_id: BulkOperationId
    created_at: Annotated[Time, said("When it was stored.", "2026-03-14T09:26:53.598000Z")]
    attempts: Annotated[list[Attempt], said("Every attempt, oldest first.")]


class Event(Answer):
    """An event and what became of it."""

    written_raw = "payload"

    id: OwnEventId
    event_type: EventType
    tenant_id: TenantId
    created_at: AcceptedAt
    correlation_id: Annotated[
        str,
        Meta(pattern="^[0-9a-f]{32}$"),
        said(
            "The trace id of the event: its producer's, or the event's own id.",
            "4bf92f3577b34da6a3ce929d0e0e4736",
        ),
    ]
    pruned_before: Annotated[
        Time | None,
        said(
            "Deliveries of this event that ended before this time may have been deleted as too old. `null`: "
            "nothing of it was.",
            None,
        ),
    ]
    sagas: Annotated[
        list[Saga],
        said("One for each subscription that the event was routed to, and one for each requeue."),
    ]
    routing: Annotated[Routing, said("How it was routed.")]
    payload: Payload
