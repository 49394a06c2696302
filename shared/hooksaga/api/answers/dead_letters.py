"""Answers about deliveries that were given up, and about ending one."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    EXAMPLE_EVENT_ID,
    Answer,
    Count,
    ErrorCode,
    EventId,
    EventType,
    Page,
    Payload,
    RowId,
    SagaId,
    SubscriptionId,
    TenantId,
    Time,
    said,
)


class DeadLetter(Answer):
    """A delivery whose attempts ran out, or that was ended."""

    id: Annotated[RowId, said("The number that names it.", 42)]
    saga_id: Annotated[SagaId, said("The saga that failed.", 4712)]
    event_id: Annotated[EventId, said("The event that was to be delivered.", EXAMPLE_EVENT_ID)]
    subscription_id: Annotated[SubscriptionId, said("The subscription.", 8)]
    tenant_id: TenantId
    event_type: EventType
    final_error_code: Annotated[ErrorCode | None, said("The word of the last failure.", "http_503")]
    reason: Annotated[
        str | None,
        said(
            "Why no other attempt was made, where the last attempt did not end it: the subscription took "
            "nothing, or an operator canceled it.",
            None,
        ),
    ]
    failed_at: Annotated[Time, said("When the last attempt failed.", "2026-03-14T11:02:07.250000Z")]
    requeued_as: Annotated[RowId | None, said("The saga that it was requeued as.", None)]


class DeadLetterWithPayload(DeadLetter):
    """A dead letter as it is shown alone."""

    written_raw = "payload_snapshot"

    payload_snapshot: Annotated[Payload, said("The event's payload, to the byte.")]


class DeadLetterList(Page[DeadLetter]):
    """A page of dead letters."""

    next: Annotated[
        str | None,
        said("To be passed as `cursor` for the next page; `null` on the last.", "000000000000002A"),
    ]


class Requeued(Answer):
    """A dead letter and the saga that it was requeued as."""

    dead_letter_id: Annotated[RowId, said("The dead letter that was requeued.", 42)]
    saga_id: Annotated[SagaId, said("The new saga.", 4790)]


class RequeuedMatches(Answer):
    """What became of the dead letters that match."""

    matched: Annotated[Count, said("Dead letters that match and were not requeued before.", 120)]
    requeued: Annotated[Count, said("Dead letters that were requeued by this call.", 118)]
    skipped: Annotated[
        Count,
        said(
            "Dead letters that match and could not be requeued: their subscription is not active and "
            "verified.",
            2,
        ),
    ]
    dry_run: Annotated[bool, said("Whether they were only counted.", False)]


class CanceledSaga(Answer):
    """A saga that was asked to end."""

    saga_id: SagaId
    status: Annotated[str, said("The saga's state at this moment.", "PendingRetry")]
