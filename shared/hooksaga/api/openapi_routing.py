"""Schemas of the answer to "why did this subscription get the event, or not", with their words and examples."""

from hooksaga.api.openapi_schemas import EVENT_ID, FLAG, ID, NAME, NUMBER, TEXT, TIME, Json, maybe, record
from hooksaga.core.routing import Reason, RoutingState, StartedBy
from hooksaga.core.saga import SagaStatus


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _said(schema: Json, words: str) -> Json:
    return {"description": words, **schema}


_FACTS: Json = {
    "event_type": _said(NAME, "Which events it took."),
    "active": _said(FLAG, "Whether it was switched on."),
    "verified": _said(FLAG, "Whether its address had answered the challenge."),
    "eligible_since": _said(maybe(TIME), "Events accepted since then were for it."),
    "deleted_at": _said(maybe(TIME), "When it was deleted."),
}

_STANDING: Json = {
    "id": _said(ID, "The newest saga of this event and subscription."),
    "status": {"enum": [status.value for status in SagaStatus]},
    "started_by": _said(maybe({"enum": [one.value for one in StartedBy]}), "`null` where it is not known."),
    "created_at": TIME,
    "attempt_count": NUMBER,
    "attempt_limit": _said(NUMBER, "Attempts in all, as the subscription has it now."),
    "next_attempt_at": _said(maybe(TIME), "When the next attempt is due, while it waits for one."),
    "final_error_code": maybe(_ref("ErrorCode")),
    "dead_letter_id": _said(maybe(ID), "What it ended as, if it was given up."),
    "dead_letter_reason": _said(
        maybe(TEXT), "Why no other attempt was made, where the last one did not end it."
    ),
}

_DECISION: Json = {
    "subscription_id": ID,
    "subscription_created_at": _said(TIME, "When the subscription was created."),
    "callback_host": _said(TEXT, "The host of its address as of now."),
    "matched": _said(maybe(FLAG), "Whether the event was for it when it was routed; `null`: not known."),
    "reason": _said(maybe({"enum": [reason.value for reason in Reason]}), "Why it was not for it."),
    "then": _said(maybe(_ref("RoutingFacts")), "What the router saw; `null` when it saw no subscription."),
    "now": _said(maybe(_ref("RoutingFacts")), "What is true now; `null` when nothing has changed."),
    "saga": _said(
        maybe(_ref("SagaStanding")),
        "Where the delivery stands. `null` though it matched: it was delivered, and pruned since.",
    ),
}

_ROUTING: Json = {
    "state": _said(
        {"enum": [state.value for state in RoutingState]},
        "`unrecorded`: routed by a version that did not write down what it saw.",
    ),
    "waiting_since": _said(maybe(TIME), "Since when it has waited to be routed; `null` once it is routed."),
    "routed_at": maybe(TIME),
    "sagas_started": _said(maybe(NUMBER), "How many subscriptions it was routed to; while it waits, so far."),
    "decisions": _said(
        {"type": "array", "items": _ref("RoutingDecision")},
        "The tenant's subscriptions: with a saga, then of this event type at some time, then the others.",
    ),
    "next": _said(maybe(TEXT), "To be passed as `cursor` for more; `null` when there is no more."),
}

ROUTING_SCHEMAS: Json = {
    "RoutingFacts": record(_FACTS),
    "SagaStanding": record(_STANDING),
    "RoutingDecision": record(_DECISION),
    "Routing": record(_ROUTING),
    "EventRouting": record(
        {
            "id": EVENT_ID,
            "event_type": NAME,
            "tenant_id": NAME,
            "created_at": TIME,
            "routing": _ref("Routing"),
        }
    ),
}

_INACTIVE: Json = {
    "event_type": "order.created",
    "active": False,
    "verified": True,
    "eligible_since": None,
    "deleted_at": None,
}
_ROUTING_EXAMPLE: Json = {
    "state": "routed",
    "waiting_since": None,
    "routed_at": "2026-03-14T09:26:53.598000Z",
    "sagas_started": 0,
    "decisions": [
        {
            "subscription_id": 9,
            "subscription_created_at": "2026-03-01T07:55:10.118000Z",
            "callback_host": "shop.example",
            "matched": False,
            "reason": "inactive",
            "then": _INACTIVE,
            "now": {**_INACTIVE, "active": True, "eligible_since": "2026-03-14T10:00:00.000000Z"},
            "saga": None,
        }
    ],
    "next": None,
}

ROUTING_EXAMPLES: Json = {
    "Routing": _ROUTING_EXAMPLE,
    "EventRouting": {
        "id": "evt_0199c0de7d4e7a3b8f1e2d3c4b5a6978",
        "event_type": "order.created",
        "tenant_id": "default",
        "created_at": "2026-03-14T09:26:53.589793Z",
        "routing": _ROUTING_EXAMPLE,
    },
}
