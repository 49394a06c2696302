"""One example for each body of the HTTP API. A test holds each to its schema."""

from typing import Any

from shared.runtime.openapi_routing import ROUTING_EXAMPLES

Json = dict[str, Any]

_EVENT_ID = "evt_0199c0de7d4e7a3b8f1e2d3c4b5a6978"
_ACCEPTED: Json = {
    "id": _EVENT_ID,
    "event_type": "order.created",
    "created_at": "2026-03-14T09:26:53.589793Z",
    "duplicate": False,
}
_NEW_SUBSCRIPTION: Json = {
    "event_type": "order.created",
    "callback_url": "https://shop.example/hooks",
    "description": "orders of the web shop",
    "max_retry_limit": 8,
    "headers": {"x-shop": "berlin"},
}
_SUBSCRIPTION: Json = {
    "id": 7,
    "tenant_id": "default",
    **_NEW_SUBSCRIPTION,
    "pending_callback_url": None,
    "active": True,
    "verified": True,
    "eligible_since": "2026-03-01T08:00:00.000000Z",
    "base_delay_seconds": None,
    "timeout_seconds": None,
    "created_at": "2026-03-01T07:55:10.118000Z",
    "updated_at": "2026-03-01T08:00:00.000000Z",
}
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105 - an example
_ATTEMPT: Json = {
    "id": 9001,
    "attempt_number": 1,
    "status": "Completed",
    "attempt_at": "2026-03-14T09:26:53.601000Z",
    "leased_at": "2026-03-14T09:26:53.604000Z",
    "finished_at": "2026-03-14T09:26:53.688000Z",
    "duration_ms": 81,
    "response_status": 200,
    "error_code": None,
    "response_body": "ok",
    "worker_id": "worker-1",
}
_SAGA: Json = {
    "id": 4711,
    "subscription_id": 7,
    "status": "Completed",
    "attempt_count": 1,
    "next_attempt_at": "2026-03-14T09:26:53.601000Z",
    "final_error_code": None,
    "requeued_from": None,
    "attempts": [_ATTEMPT],
}
_DEAD_LETTER: Json = {
    "id": 42,
    "saga_id": 4712,
    "event_id": _EVENT_ID,
    "subscription_id": 8,
    "tenant_id": "default",
    "event_type": "order.created",
    "final_error_code": "http_503",
    "failed_at": "2026-03-14T11:02:07.250000Z",
    "requeued_as": None,
}
_PROBLEM: Json = {
    "type": "/v1/docs#error-invalid_event_type",
    "status": 422,
    "code": "invalid_event_type",
    "detail": "event_type has 1 to 100 characters out of A-Z a-z 0-9 _ . : / -",
    "field": "event_type",
}

EXAMPLES: Json = {
    "NewEvent": {"event_type": "order.created", "payload": {"order": 1001, "total": 19.99}},
    "NewEvents": {
        "items": [
            {"event_type": "order.created", "payload": {"order": 1001}, "idempotency_key": "order-1001"},
            {"event_type": "order created", "payload": {"order": 1002}},
        ]
    },
    "CloudEvent": {
        "specversion": "1.0",
        "type": "order.created",
        "source": "/shops/berlin",
        "id": "order-1001",
        "data": {"total": 19.99},
    },
    "AcceptedEvent": _ACCEPTED,
    "BatchAnswer": {"items": [_ACCEPTED, {"error": _PROBLEM}]},
    "Attempt": _ATTEMPT,
    "Saga": _SAGA,
    "Event": {
        "id": _EVENT_ID,
        "event_type": "order.created",
        "tenant_id": "default",
        "created_at": "2026-03-14T09:26:53.589793Z",
        "correlation_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "sagas": [_SAGA],
        "routing": ROUTING_EXAMPLES["Routing"],
        "payload": {"order": 1001, "total": 19.99},
    },
    **ROUTING_EXAMPLES,
    "NewSubscription": _NEW_SUBSCRIPTION,
    "SubscriptionChange": {"max_retry_limit": 12, "active": False},
    "SecretRotation": {"overlap_seconds": 3600},
    "RequeueFilter": {"subscription_id": 8, "error_code": "http_503", "dry_run": True},
    "Subscription": _SUBSCRIPTION,
    "SubscriptionWithSecret": {**_SUBSCRIPTION, "secret": _SECRET},
    "SubscriptionList": {"items": [_SUBSCRIPTION], "next": None},
    "DeadLetter": _DEAD_LETTER,
    "DeadLetterWithPayload": {**_DEAD_LETTER, "payload_snapshot": {"order": 1001, "total": 19.99}},
    "DeadLetterList": {"items": [_DEAD_LETTER], "next": "000000000000002A"},
    "Requeued": {"dead_letter_id": 42, "saga_id": 4790},
    "RequeuedMatches": {"matched": 120, "requeued": 118, "skipped": 2, "dry_run": False},
    "CanceledSaga": {"saga_id": 4711, "status": "PendingRetry"},
    "Stats": {
        "outbox": 0,
        "sagas_waiting": 12,
        "sagas_due": 3,
        "jobs_pending": 3,
        "jobs_leased": 40,
        "results_unapplied": 1,
        "dead_letters_24h": 2,
        "delivered_last_minute": 5400,
        "oldest_due_seconds": 0.4,
    },
    "Health": {"status": "ok"},
    "ItemProblem": _PROBLEM,
    "Problem": {**_PROBLEM, "title": "invalid event type", "request_id": "req_5f2b8c0d9e1a4b7c6d3e2f10"},
}


def give_examples(schemas: Json) -> Json:
    """The schemas, each with its example where there is one."""
    return {
        name: {**schema, "examples": [EXAMPLES[name]]} if name in EXAMPLES else schema
        for name, schema in schemas.items()
    }
