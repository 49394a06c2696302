"""Schemas of the OpenAPI document that no model checks: ids, and answers."""

from typing import Any

from hooksaga.core.attempts import AttemptTrigger
from hooksaga.core.bulk import BulkKind, BulkStatus
from hooksaga.core.outcomes import NO_PUBLIC_ADDRESS, ErrorCode
from hooksaga.core.saga import JobStatus, SagaStatus

Json = dict[str, Any]

NAME_PATTERN = "^[A-Za-z0-9_.:/-]{1,100}$"
MAX_ID = 2**63 - 1

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer", "minimum": 0}
ID: Json = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
FLAG: Json = {"type": "boolean"}
URI_REFERENCE: Json = {"type": "string", "format": "uri-reference"}
TIME: Json = {"type": "string", "format": "date-time"}
NAME: Json = {"type": "string", "pattern": NAME_PATTERN}
EVENT_ID: Json = {"type": "string", "pattern": "^evt_[0-9a-f]{32}$"}
TRACE_ID: Json = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
ANY_JSON: Json = {"description": "Any JSON value, kept to the byte."}


def maybe(schema: Json) -> Json:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def record(required: Json, optional: Json | None = None, *, closed: bool = False) -> Json:
    """An object. Answers may get more fields later; a closed one takes no others now."""
    schema: Json = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }
    return {**schema, "additionalProperties": False} if closed else schema


def listed(schema: str) -> Json:
    """A page of a list."""
    items: Json = {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}
    return record({"items": items, "next": maybe(TEXT)})


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


ERROR_CODE = _ref("ErrorCode")
JOB_STATUS: Json = {"enum": [status.value for status in JobStatus]}
TRIGGER: Json = {"enum": [trigger.value for trigger in AttemptTrigger]}
REQUEST_HEADERS: Json = {"type": "object", "additionalProperties": TEXT}


_ATTEMPT: Json = {
    "id": ID,
    "attempt_number": NUMBER,
    "max_attempts": maybe(NUMBER),
    "trigger": TRIGGER,
    "status": JOB_STATUS,
    "attempt_at": TIME,
    "leased_at": maybe(TIME),
    "finished_at": maybe(TIME),
    "duration_ms": maybe(NUMBER),
    "response_status": maybe(NUMBER),
    "error_code": maybe(_ref("ErrorCode")),
    "request_headers": maybe(REQUEST_HEADERS),
    "response_body": maybe(TEXT),
    "worker_id": maybe(TEXT),
    "reconnected": FLAG,
}

_SAGA: Json = {
    "id": ID,
    "subscription_id": ID,
    "status": {"enum": [status.value for status in SagaStatus]},
    "attempt_count": NUMBER,
    "next_attempt_at": TIME,
    "final_error_code": maybe(_ref("ErrorCode")),
    "requeued_from": maybe(ID),
    "bulk_operation_id": maybe(ID),
    "attempts": {"type": "array", "items": _ref("Attempt")},
}

_DEAD_LETTER: Json = {
    "id": ID,
    "saga_id": ID,
    "event_id": EVENT_ID,
    "subscription_id": ID,
    "tenant_id": NAME,
    "event_type": NAME,
    "final_error_code": maybe(_ref("ErrorCode")),
    "reason": maybe(TEXT),
    "failed_at": TIME,
    "requeued_as": maybe(ID),
}

_BULK_LANES: Json = {"type": "array", "items": _ref("BulkLane")}

_BULK_OPERATION: Json = {
    "id": ID,
    "kind": {"enum": [kind.value for kind in BulkKind]},
    "status": {"enum": [status.value for status in BulkStatus]},
    "tenant_id": maybe(NAME),
    "filter": {"type": "object"},
    "rate_per_second": {"type": "number"},
    "reason": TEXT,
    "created_by": TEXT,
    "created_by_key_id": maybe(ID),
    "matched": NUMBER,
    "done": NUMBER,
    "skipped": NUMBER,
    "last_step_at": maybe(TIME),
    "created_at": TIME,
    "updated_at": TIME,
    "finished_at": maybe(TIME),
}

SCHEMAS: Json = {
    "Attempt": record(_ATTEMPT),
    "Saga": record(_SAGA),
    "Event": record(
        {
            "id": EVENT_ID,
            "event_type": NAME,
            "tenant_id": NAME,
            "created_at": TIME,
            "correlation_id": TRACE_ID,
            "payload": ANY_JSON,
            "pruned_before": maybe(TIME),
            "sagas": {"type": "array", "items": _ref("Saga")},
            "routing": _ref("Routing"),
        }
    ),
    "DeadLetter": record(_DEAD_LETTER),
    "DeadLetterWithPayload": record({**_DEAD_LETTER, "payload_snapshot": ANY_JSON}),
    "DeadLetterList": listed("DeadLetter"),
    "Requeued": record({"dead_letter_id": ID, "saga_id": ID}),
    "RequeuedMatches": record({"matched": NUMBER, "requeued": NUMBER, "skipped": NUMBER, "dry_run": FLAG}),
    "BulkLane": record(
        {
            "subscription_id": ID,
            **dict.fromkeys(("matched", "done", "skipped"), NUMBER),
            "finished": FLAG,
        }
    ),
    "BulkOperation": record(_BULK_OPERATION),
    "BulkOperationWithLanes": record({**_BULK_OPERATION, "lanes": _BULK_LANES}),
    "BulkOperationStarted": record({**_BULK_OPERATION, "lanes": _BULK_LANES, "created": FLAG}),
    "BulkOperationList": listed("BulkOperation"),
    "BulkCount": record(
        {
            "kind": {"enum": [kind.value for kind in BulkKind]},
            "rate_per_second": {"type": "number"},
            "matched": NUMBER,
            "subscriptions": NUMBER,
            "seconds": {"type": "number"},
            "dry_run": {"const": True},
        }
    ),
    "BulkOperationOrCount": {"anyOf": [_ref("BulkOperationStarted"), _ref("BulkCount")]},
    "CanceledSaga": record({"saga_id": ID, "status": TEXT}),
    "Stats": record(
        {
            **dict.fromkeys(("outbox", "sagas_waiting", "sagas_due", "jobs_pending", "jobs_leased"), NUMBER),
            **dict.fromkeys(("results_unapplied", "dead_letters_24h", "delivered_last_minute"), NUMBER),
            "oldest_due_seconds": maybe({"type": "number"}),
        }
    ),
    "OpenApi": record({"openapi": TEXT, "paths": {"type": "object"}}),
    "ReferencePage": {"type": "string", "description": "an HTML page"},
    "Health": record({"status": {"const": "ok"}}),
    "ErrorCode": {
        "type": "string",
        "anyOf": [
            {"enum": [*(code.value for code in ErrorCode), NO_PUBLIC_ADDRESS]},
            {"pattern": "^http_[0-9]{3}$"},
        ],
    },
    "ItemProblem": record(
        {"type": URI_REFERENCE, "status": NUMBER, "code": TEXT, "detail": TEXT}, {"field": TEXT}
    ),
    "Problem": record(
        {
            "type": URI_REFERENCE,
            "title": TEXT,
            "status": NUMBER,
            "detail": TEXT,
            "code": TEXT,
            "request_id": TEXT,
        },
        {"field": TEXT},
    ),
}
