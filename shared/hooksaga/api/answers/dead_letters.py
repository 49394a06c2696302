"""Dead letters, requeues and canceled sagas."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    EXAMPLE_EVENT_ID,
    Answer,
    Count,
    ErrorCode,
    EventId,
    EventType,
    IsErased,
    Page,
    Payload,
    PayloadRemovedAt,
    RowId,
    SagaId,
    SubscriptionId,
    TenantId,
    Time,
    described,
    next_page,
)


class DeadLetter(Answer):
    """A delivery that ended without success."""

    id: Annotated[RowId, described("Id.", 42)]
    saga_id: Annotated[SagaId, described("The saga that failed.", 4712)]
    event_id: Annotated[EventId, described("The event.", EXAMPLE_EVENT_ID)]
    subscription_id: Annotated[SubscriptionId, described("The subscription.", 8)]
    tenant_id: TenantId
    event_type: EventType
    final_error_code: Annotated[ErrorCode | None, described("Error code of the last failure.", "http_503")]
    reason: Annotated[
        str | None,
        described(
            "Why there was no further attempt, if the last failure is not the reason: the subscription was "
            "inactive, or an operator canceled the saga.",
            None,
        ),
    ]
    failed_at: Annotated[Time, described("When the last attempt failed.", "2026-03-14T11:02:07.250000Z")]
    requeued_as: Annotated[RowId | None, described("The saga that it was requeued as.", None)]
    payload_removed_at: PayloadRemovedAt
    is_erased: IsErased


class DeadLetterWithPayload(DeadLetter):
    """A dead letter as it is shown alone."""

    written_raw = ("payload_snapshot",)

    payload_snapshot: Annotated[Payload, described("The event's payload, to the byte.")]


class DeadLetterList(Page[DeadLetter]):
    """A page of dead letters."""

    next: Annotated[str | None, next_page("000000000000002A")]


class Requeued(Answer):
    """A requeued dead letter and its new saga."""

    dead_letter_id: Annotated[RowId, described("The dead letter that was requeued.", 42)]
    saga_id: Annotated[SagaId, described("The new saga.", 4790)]


class RequeuedMatches(Answer):
    """The result of requeueing by filter."""

    matched: Annotated[Count, described("Matching dead letters that were not requeued before.", 120)]
    requeued: Annotated[Count, described("Dead letters that this call requeued.", 118)]
    skipped: Annotated[
        Count,
        described(
            "Matching dead letters that could not be requeued: their subscription is not active and "
            "verified.",
            2,
        ),
    ]
    dry_run: Annotated[bool, described("Whether this was a dry run.", False)]


class CanceledSaga(Answer):
    """The result of canceling a saga."""

    saga_id: SagaId
    status: Annotated[str, described("The saga's state at this moment.", "PendingRetry")]
