"""Accepted events, and an event with its sagas, attempts and routing."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from hooksaga.api.answers.answer import (
    AcceptedAt,
    Answer,
    Attributes,
    BulkOperationId,
    Count,
    EventType,
    ExtractedAttributes,
    IsErased,
    LastErrorCode,
    OwnEventId,
    Page,
    Payload,
    PayloadRemovedAt,
    RequeuedFrom,
    ResentFrom,
    RowId,
    SagaState,
    SubscriptionId,
    TenantId,
    TestSubscriptionId,
    Time,
    WaitsForSagaId,
    WaitsForWord,
    always,
    described,
    either,
    next_page,
)
from hooksaga.api.answers.attempts import Attempt
from hooksaga.api.answers.problems import ItemProblem
from hooksaga.api.answers.routing import Routing


class PayloadWarning(Answer):
    """Where the payload of an accepted event does not match the schema of its type."""

    code: Annotated[str, always("payload_mismatch"), described("What it warns of.", "payload_mismatch")]
    field: Annotated[str, described("The place in the payload.", "payload/customer/country")]
    detail: Annotated[str, described("The rule.", 'the value is not of type "string"')]


class AcceptedEvent(Answer):
    """An accepted event."""

    id: OwnEventId
    event_type: EventType
    created_at: AcceptedAt
    duplicate: Annotated[
        bool,
        described(
            "Whether the idempotency key was used before. `true`: this repeats the first response.", False
        ),
    ]
    warning: Annotated[
        PayloadWarning | UnsetType,
        described("Where the payload does not match the schema of its type; only if that is no error."),
    ] = UNSET


class RefusedEvent(Answer):
    """A rejected item of a batch."""

    error: Annotated[ItemProblem, described("The error.")]


class BatchAnswer(Answer):
    """The result of a batch."""

    items: Annotated[
        list[Annotated[Any, either(AcceptedEvent, RefusedEvent)]],
        described("One result per item, in the order of the request: an accepted event, or `{error}`."),
    ]


class FoundEvent(Answer):
    """An event, as part of a list, with its deliveries by state."""

    id: OwnEventId
    event_type: EventType
    tenant_id: TenantId
    idempotency_key: Annotated[
        str | None,
        described("The `Idempotency-Key`, or the `id` of a CloudEvent; `null` without one.", "order-1001"),
    ]
    created_at: AcceptedAt
    ordering_key: Annotated[str | None, described("The ordering key; `null` without one.", None)]
    test_subscription_id: TestSubscriptionId
    attributes: Attributes
    routed: Annotated[bool, described("Whether all of its deliveries have started.", True)]
    deliveries: Annotated[
        Count, described("Its deliveries, with those that send it again; 100 means 100 or more.", 2)
    ]
    completed: Annotated[Count, described("Of these: delivered.", 1)]
    open: Annotated[Count, described("Of these: not ended.", 0)]
    dead: Annotated[Count, described("Of these: dead letters, requeued or not.", 1)]


class FoundEventList(Page[FoundEvent]):
    """A page of events."""

    next: Annotated[str | None, next_page("00064D002E9B07800000000000002329")]


class Saga(Answer):
    """The delivery of one event to one subscription."""

    id: Annotated[RowId, described("Id.", 4711)]
    subscription_id: SubscriptionId
    status: SagaState
    attempt_count: Annotated[Count, described("Finished attempts.", 1)]
    next_attempt_at: Annotated[
        Time, described("Time when the next attempt is due.", "2026-03-14T09:26:53.601000Z")
    ]
    waits_for: WaitsForWord
    waits_for_saga_id: WaitsForSagaId
    final_error_code: LastErrorCode
    requeued_from: RequeuedFrom
    resent_from: ResentFrom
    bulk_operation_id: BulkOperationId
    created_at: Annotated[Time, described("Time of creation.", "2026-03-14T09:26:53.598000Z")]
    attempts: Annotated[list[Attempt], described("All attempts, oldest first.")]


class Event(Answer):
    """An event with its deliveries."""

    written_raw = ("attributes", "extracted_attributes", "payload")

    id: OwnEventId
    event_type: EventType
    tenant_id: TenantId
    test_subscription_id: TestSubscriptionId
    created_at: AcceptedAt
    ordering_key: Annotated[
        str | None,
        described("Ordered subscriptions deliver the events of one key one at a time, in order.", None),
    ]
    attributes: Attributes
    extracted_attributes: ExtractedAttributes
    correlation_id: Annotated[
        str,
        Meta(pattern="^[0-9a-f]{32}$"),
        described(
            "The trace id: from the producer's `traceparent`, or the event's id.",
            "4bf92f3577b34da6a3ce929d0e0e4736",
        ),
    ]
    payload_removed_at: PayloadRemovedAt
    is_erased: IsErased
    pruned_before: Annotated[
        Time | None,
        described(
            "Deliveries of this event that ended before this time may have been deleted by retention. `null`: "
            "none was.",
            None,
        ),
    ]
    sagas: Annotated[
        list[Saga],
        described("One per subscription that the event was routed to, and one per requeue."),
    ]
    routing: Annotated[Routing, described("How the event was routed.")]
    payload: Payload
