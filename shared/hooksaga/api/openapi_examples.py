"""One example for each body of the HTTP API. A test holds each to its schema."""

from typing import Any

from hooksaga.api.openapi_routing import ROUTING_EXAMPLES

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
    "callback_url": "https://shop.example.com/hooks",
    "description": "orders of the web shop",
    "max_retry_limit": 8,
    "headers": {"x-shop": "berlin"},
}
_ATTEMPT: Json = {
    "id": 9001,
    "attempt_number": 1,
    "max_attempts": 8,
    "trigger": "first",
    "status": "Completed",
    "attempt_at": "2026-03-14T09:26:53.601000Z",
    "leased_at": "2026-03-14T09:26:53.604000Z",
    "finished_at": "2026-03-14T09:26:53.688000Z",
    "duration_ms": 81,
    "response_status": 200,
    "error_code": None,
    "request_headers": {
        "content-type": "application/json",
        "webhook-id": _EVENT_ID,
        "webhook-timestamp": "1773480413",
        "webhook-signature": "***",
        "hooksaga-event-type": "order.created",
        "hooksaga-attempt": "1",
        "x-shop": "***",
    },
    "response_body": "ok",
    "worker_id": "worker-1",
    "reconnected": False,
}
_WHOLE_ATTEMPT: Json = {
    **_ATTEMPT,
    "event_id": _EVENT_ID,
    "event_type": "order.created",
    "tenant_id": "default",
    "subscription_id": 7,
    "saga_id": 4711,
    "claim_count": 1,
    "resolved_ip": "203.0.113.7",
    "requeued_from": None,
    "bulk_operation_id": None,
    "retry_after_seconds": None,
    "response_truncated": False,
}
_FOLLOW = "00064D002E9B07800000000000000000" + "00064D002E9B0780" * 2 + "00000000000003A7" + "0" * 16
_SHOWN_ALONE = (
    "request_headers",
    "requeued_from",
    "bulk_operation_id",
    "retry_after_seconds",
    "response_body",
    "response_truncated",
)
_LOGGED_ATTEMPT: Json = {name: value for name, value in _WHOLE_ATTEMPT.items() if name not in _SHOWN_ALONE}
_SAGA: Json = {
    "id": 4711,
    "subscription_id": 7,
    "status": "Completed",
    "attempt_count": 1,
    "next_attempt_at": "2026-03-14T09:26:53.601000Z",
    "final_error_code": None,
    "requeued_from": None,
    "bulk_operation_id": None,
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
    "reason": None,
    "failed_at": "2026-03-14T11:02:07.250000Z",
    "requeued_as": None,
}
_BULK_OPERATION: Json = {
    "id": 3,
    "kind": "requeue",
    "status": "Running",
    "tenant_id": None,
    "filter": {"error_code": "http_503"},
    "rate_per_second": 20.0,
    "reason": "the receiver is back",
    "created_by": "on-call",
    "created_by_key_id": 2,
    "matched": 12000,
    "done": 4260,
    "skipped": 2,
    "last_step_at": "2026-03-14T12:03:33.100000Z",
    "created_at": "2026-03-14T12:00:00.200000Z",
    "updated_at": "2026-03-14T12:03:33.100000Z",
    "finished_at": None,
}
_BULK_LANE: Json = {"subscription_id": 8, "matched": 12000, "done": 4260, "skipped": 2, "finished": False}
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
        "pruned_before": None,
        "sagas": [_SAGA],
        "routing": ROUTING_EXAMPLES["Routing"],
        "payload": {"order": 1001, "total": 19.99},
    },
    **ROUTING_EXAMPLES,
    "NewSubscription": _NEW_SUBSCRIPTION,
    "SubscriptionChange": {
        "max_retry_limit": 12,
        "active": False,
        "headers": {"x-shop": "paris", "x-old": None},
    },
    "SecretRotation": {"overlap_seconds": 3600},
    "RequeueFilter": {"subscription_id": 8, "error_code": "http_503", "dry_run": True},
    "NewPortalLink": {
        "tenant_id": "acme",
        "minutes": 10,
        "name": "Acme webhooks",
        "colour": "#0b5cad",
        "embed_origin": "https://app.acme.example",
    },
    "DeadLetter": _DEAD_LETTER,
    "DeadLetterWithPayload": {**_DEAD_LETTER, "payload_snapshot": {"order": 1001, "total": 19.99}},
    "DeadLetterList": {"items": [_DEAD_LETTER], "next": "000000000000002A"},
    "Requeued": {"dead_letter_id": 42, "saga_id": 4790},
    "RequeuedMatches": {"matched": 120, "requeued": 118, "skipped": 2, "dry_run": False},
    "LoggedAttempt": _LOGGED_ATTEMPT,
    "WholeAttempt": _WHOLE_ATTEMPT,
    "LoggedAttemptList": {"items": [_LOGGED_ATTEMPT], "next": "00064D002E9B07800000000000002329"},
    "FollowedAttempts": {"items": [_LOGGED_ATTEMPT], "next": _FOLLOW, "more": False},
    "SubscriptionStats": {
        "subscription_id": 7,
        "window_hours": 24,
        "completed": 5210,
        "failed": 14,
        "success_rate": 0.9973,
        "since": None,
        "last_error": {"code": "http_503", "at": "2026-03-14T08:40:12.104000Z"},
        "next_retry_at": "2026-03-14T09:27:20.000000Z",
        "backlog": {"pending": 0, "leased": 2, "waiting_retry": 1},
        "latency_ms": {"p50": 81, "p95": 240, "p99": 900},
    },
    "NewBulkOperation": {
        "kind": "requeue",
        "filter": {"error_code": "http_503"},
        "rate_per_second": 20,
        "reason": "the receiver is back",
    },
    "BulkFilter": {"subscription_id": 8, "since": "2026-03-01T00:00:00Z"},
    "BulkChange": {"rate_per_second": 50},
    "BulkLane": _BULK_LANE,
    "BulkOperation": _BULK_OPERATION,
    "BulkOperationWithLanes": {**_BULK_OPERATION, "lanes": [_BULK_LANE]},
    "BulkOperationStarted": {**_BULK_OPERATION, "lanes": [_BULK_LANE], "created": True},
    "BulkOperationList": {"items": [_BULK_OPERATION], "next": None},
    "BulkCount": {
        "kind": "requeue",
        "rate_per_second": 20.0,
        "matched": 12000,
        "subscriptions": 1,
        "seconds": 600.0,
        "dry_run": True,
    },
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
