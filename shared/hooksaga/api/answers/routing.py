"""Answers to "why did this subscription get the event, or not"."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    AcceptedAt,
    Answer,
    Count,
    ErrorCode,
    EventType,
    OwnEventId,
    RowId,
    SagaState,
    SubscriptionId,
    TenantId,
    Time,
    one_of,
    said,
)
from hooksaga.core.routing import Reason, RoutingState, StartedBy


class RoutingFacts(Answer):
    """What routing asks of a subscription, at one moment."""

    event_type: Annotated[EventType, said("Which events it took.", "order.created")]
    active: Annotated[bool, said("Whether it was switched on.", False)]
    verified: Annotated[bool, said("Whether its address had answered the challenge.", True)]
    eligible_since: Annotated[Time | None, said("Events accepted since then were for it.", None)]
    deleted_at: Annotated[Time | None, said("When it was deleted.", None)]


class SagaStanding(Answer):
    """Where the delivery to one subscription stands."""

    id: Annotated[RowId, said("The newest saga of this event and subscription.", 4711)]
    status: SagaState
    started_by: Annotated[
        Annotated[str, one_of(StartedBy)] | None, said("`null` where it is not known.", "routing")
    ]
    created_at: Annotated[Time, said("When it was stored.", "2026-03-14T09:26:53.598000Z")]
    attempt_count: Annotated[Count, said("Attempts that have ended.", 1)]
    attempt_limit: Annotated[Count, said("Attempts in all, as the subscription has it now.", 8)]
    next_attempt_at: Annotated[
        Time | None, said("When the next attempt is due, while it waits for one.", None)
    ]
    final_error_code: Annotated[
        ErrorCode | None, said("The word of the last failure; kept after a later success.", None)
    ]
    dead_letter_id: Annotated[RowId | None, said("What it ended as, if it was given up.", None)]
    dead_letter_reason: Annotated[
        str | None, said("Why no other attempt was made, where the last one did not end it.", None)
    ]


class RoutingDecision(Answer):
    """One subscription, and whether the event was for it."""

    subscription_id: Annotated[SubscriptionId, said("The subscription.", 9)]
    subscription_created_at: Annotated[
        Time, said("When the subscription was created.", "2026-03-01T07:55:10.118000Z")
    ]
    callback_host: Annotated[str, said("The host of its address as of now.", "shop.example")]
    matched: Annotated[
        bool | None, said("Whether the event was for it when it was routed; `null`: not known.", False)
    ]
    reason: Annotated[
        Annotated[str, one_of(Reason)] | None, said("Why it was not for it.", Reason.INACTIVE.value)
    ]
    then: Annotated[RoutingFacts | None, said("What the router saw; `null` when it saw no subscription.")]
    now: Annotated[
        RoutingFacts | None,
        said(
            "What is true now; `null` when nothing has changed.",
            {
                "event_type": "order.created",
                "active": True,
                "verified": True,
                "eligible_since": "2026-03-14T10:00:00.000000Z",
                "deleted_at": None,
            },
        ),
    ]
    saga: Annotated[
        SagaStanding | None,
        said(
            "Where the delivery stands. `null` though it matched: it was delivered, and pruned since.", None
        ),
    ]


class Routing(Answer):
    """What is known of an event's routing, with a page of its tenant's subscriptions."""

    state: Annotated[
        str,
        one_of(RoutingState),
        said("`unrecorded`: routed by a version that did not write down what it saw.", "routed"),
    ]
    waiting_since: Annotated[
        Time | None, said("Since when it has waited to be routed; `null` once it is routed.", None)
    ]
    routed_at: Annotated[Time | None, said("When it was routed.", "2026-03-14T09:26:53.598000Z")]
    sagas_started: Annotated[
        Count | None, said("How many subscriptions it was routed to; while it waits, so far.", 0)
    ]
    decisions: Annotated[
        list[RoutingDecision],
        said(
            "The tenant's subscriptions: with a saga, then of this event type at some time, then the others."
        ),
    ]
    next: Annotated[
        str | None, said("To be passed as `cursor` for more; `null` when there is no more.", None)
    ]


class EventRouting(Answer):
    """An event's routing, where it stands alone."""

    id: OwnEventId
    event_type: EventType
    tenant_id: TenantId
    created_at: AcceptedAt
    routing: Annotated[Routing, said("How it was routed.")]
