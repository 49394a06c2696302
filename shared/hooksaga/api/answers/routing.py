"""Routing of an event: which subscriptions matched, and why."""

from typing import Annotated, Any

from hooksaga.api.answers.answer import (
    AcceptedAt,
    Answer,
    Count,
    EventType,
    EventTypes,
    Filter,
    JsonText,
    LastErrorCode,
    OwnEventId,
    RowId,
    SagaState,
    SubscriptionId,
    TenantId,
    Time,
    WaitsForSagaId,
    WaitsForWord,
    described,
    next_page,
    one_of,
)
from hooksaga.core.routing import Reason, RoutingState, StartedBy


class RoutingFacts(Answer):
    """The state of a subscription that routing depends on, at one time."""

    event_types: EventTypes
    filter: Filter
    active: Annotated[bool, described("Whether the subscription was active.", False)]
    verified: Annotated[bool, described("Whether its `callback_url` had answered the challenge.", True)]
    eligible_since: Annotated[
        Time | None, described("It received the events accepted since this time.", None)
    ]
    deleted_at: Annotated[Time | None, described("Time of deletion.", None)]


class SagaStanding(Answer):
    """The state of the delivery to one subscription."""

    id: Annotated[RowId, described("The most recent saga of this event and subscription.", 4711)]
    status: SagaState
    started_by: Annotated[
        Annotated[str, one_of(StartedBy)] | None,
        described("What started the saga; `null` if unknown.", "routing"),
    ]
    created_at: Annotated[Time, described("Time of creation.", "2026-03-14T09:26:53.598000Z")]
    attempt_count: Annotated[Count, described("Finished attempts.", 1)]
    attempt_limit: Annotated[Count, described("Limit of attempts, from the current subscription.", 8)]
    next_attempt_at: Annotated[
        Time | None, described("Time when the next attempt is due; `null` if none waits.", None)
    ]
    waits_for: WaitsForWord
    waits_for_saga_id: WaitsForSagaId
    final_error_code: LastErrorCode
    dead_letter_id: Annotated[RowId | None, described("Its dead letter, if there is one.", None)]
    dead_letter_reason: Annotated[
        str | None,
        described("Why there was no further attempt, if the last attempt did not end the saga.", None),
    ]


class FailedCondition(Answer):
    """The first condition of a filter that an event does not meet."""

    name: Annotated[str, described("The attribute, or `$or`.", "total")]
    wanted: Annotated[list[Any], described("Its patterns, as in the filter.", [{"numeric": [">", 100]}])]
    value: Annotated[
        JsonText,
        described("The value of the event's attribute; `null` if it has none, and for `$or`.", 19.99),
    ]


class RoutingDecision(Answer):
    """Whether the event matched one subscription."""

    subscription_id: Annotated[SubscriptionId, described("The subscription.", 9)]
    subscription_created_at: Annotated[
        Time, described("Time when the subscription was created.", "2026-03-01T07:55:10.118000Z")
    ]
    callback_host: Annotated[str, described("The current host of its `callback_url`.", "shop.example")]
    matched: Annotated[
        bool | None, described("Whether the event matched when it was routed; `null`: unknown.", False)
    ]
    matched_by: Annotated[
        EventTypes,
        described("Those of its event types that matched the event; empty if it did not match.", []),
    ]
    reason: Annotated[
        Annotated[str, one_of(Reason)] | None,
        described("Why the event did not match.", Reason.INACTIVE.value),
    ]
    failed_condition: Annotated[
        FailedCondition | None,
        described("For `filtered`: the first condition of the filter that the event does not meet.", None),
    ]
    then: Annotated[
        RoutingFacts | None, described("The state that the router saw; `null` if it saw no subscription.")
    ]
    now: Annotated[
        RoutingFacts | None,
        described(
            "The current state; `null` if nothing has changed.",
            {
                "event_types": ["order.created"],
                "filter": None,
                "active": True,
                "verified": True,
                "eligible_since": "2026-03-14T10:00:00.000000Z",
                "deleted_at": None,
            },
        ),
    ]
    saga: Annotated[
        SagaStanding | None,
        described("The delivery. `null` for a match: the delivery ended, and retention deleted it.", None),
    ]


class Routing(Answer):
    """The routing of an event, with a page of its tenant's subscriptions."""

    state: Annotated[
        str,
        one_of(RoutingState),
        described("`unrecorded`: routed by a version that did not record its decisions.", "routed"),
    ]
    waiting_since: Annotated[
        Time | None,
        described("Time since which the event waits for routing; `null` once it is routed.", None),
    ]
    routed_at: Annotated[Time | None, described("Time of routing.", "2026-03-14T09:26:53.598000Z")]
    sagas_started: Annotated[
        Count | None, described("Number of subscriptions it was routed to, so far if it still waits.", 0)
    ]
    decisions: Annotated[
        list[RoutingDecision],
        described(
            "The tenant's subscriptions: those with a saga, those that ever received this event type, then the others."
        ),
    ]
    next: Annotated[str | None, next_page()]


class EventRouting(Answer):
    """An event with its routing only."""

    id: OwnEventId
    event_type: EventType
    tenant_id: TenantId
    created_at: AcceptedAt
    routing: Annotated[Routing, described("How the event was routed.")]
