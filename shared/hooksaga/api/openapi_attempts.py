"""Schemas of the attempt log in the OpenAPI document."""

from hooksaga.api.openapi_schemas import (
    ERROR_CODE,
    EVENT_ID,
    FLAG,
    ID,
    JOB_STATUS,
    NAME,
    NUMBER,
    REQUEST_HEADERS,
    TEXT,
    TIME,
    TRIGGER,
    Json,
    listed,
    maybe,
    record,
)

_LOGGED: Json = {
    "id": ID,
    "event_id": EVENT_ID,
    "event_type": NAME,
    "tenant_id": NAME,
    "subscription_id": ID,
    "saga_id": ID,
    "status": JOB_STATUS,
    "attempt_number": NUMBER,
    "max_attempts": maybe(NUMBER),
    "trigger": TRIGGER,
    "response_status": maybe(NUMBER),
    "error_code": maybe(ERROR_CODE),
    "duration_ms": maybe(NUMBER),
    "attempt_at": TIME,
    "leased_at": maybe(TIME),
    "finished_at": maybe(TIME),
    "worker_id": maybe(TEXT),
    "claim_count": NUMBER,
    "resolved_ip": maybe(TEXT),
    "reconnected": FLAG,
}

_WHOLE: Json = {
    **_LOGGED,
    "requeued_from": maybe(ID),
    "bulk_operation_id": maybe(ID),
    "retry_after_seconds": maybe(NUMBER),
    "request_headers": maybe(REQUEST_HEADERS),
    "response_body": maybe(TEXT),
    "response_truncated": FLAG,
}

_STATS: Json = {
    "subscription_id": ID,
    "window_hours": {"enum": [1, 24]},
    "completed": NUMBER,
    "failed": NUMBER,
    "success_rate": maybe({"type": "number", "minimum": 0, "maximum": 1}),
    "since": maybe(TIME),
    "last_error": maybe(record({"code": ERROR_CODE, "at": TIME})),
    "next_retry_at": maybe(TIME),
    "backlog": record(dict.fromkeys(("pending", "leased", "waiting_retry"), NUMBER)),
    "latency_ms": maybe(record(dict.fromkeys(("p50", "p95", "p99"), NUMBER))),
}

_LIST = listed("LoggedAttempt")

SCHEMAS: Json = {
    "LoggedAttempt": record(_LOGGED),
    "WholeAttempt": record(_WHOLE),
    "LoggedAttemptList": _LIST,
    "FollowedAttempts": record({**_LIST["properties"], "next": TEXT, "more": FLAG}),
    "SubscriptionStats": record(_STATS),
}
