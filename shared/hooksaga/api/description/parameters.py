"""Parameters of the OpenAPI document. The API accepts exactly the values that these schemas allow."""

from hooksaga.api.answers.answer import EVENT_ID_PATTERN, MAX_ID, NAME_PATTERN
from hooksaga.api.cursors import ATTEMPTS_CURSOR, FOLLOW_CURSOR, ID_CURSOR, ROUTING_CURSOR
from hooksaga.api.description.requests import KEY, OWN_TYPE_PATTERN, Json
from hooksaga.api.list_answers import ListFormat
from hooksaga.api.query_parameters import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_LONG_TEXT,
    MAX_TEXT,
    query_text_pattern,
)
from hooksaga.core.attempts import Outcome, StatusClass
from hooksaga.core.attribute_search import ATTRIBUTE_PATTERN
from hooksaga.core.bulk import BulkStatus
from hooksaga.core.event_status import EventStatus

_ID: Json = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
_EVENT_ID: Json = {"type": "string", "pattern": EVENT_ID_PATTERN}
_TIME: Json = {"type": "string", "format": "date-time"}


def _query(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _cursor(form: str) -> Json:
    return _query("cursor", {"type": "string", "pattern": f"^{form}$"}, "`next` of the previous page.")


_FILTER_TEXT: Json = {"type": "string", "pattern": f"^{query_text_pattern(MAX_TEXT)}$"}
_LONG_TEXT: Json = {"type": "string", "pattern": f"^{query_text_pattern(MAX_LONG_TEXT)}$"}
_LIMIT: Json = {"type": "integer", "default": DEFAULT_LIMIT, "minimum": 1, "maximum": MAX_LIMIT}

PARAMETERS: Json = {
    "id": {"name": "id", "in": "path", "required": True, "schema": _ID},
    "event_id": {"name": "id", "in": "path", "required": True, "schema": _EVENT_ID},
    "idempotency_key": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": KEY,
        "description": "Makes the call safe to repeat. 1 to 255 printable ASCII characters without surrounding spaces, "
        "stored with the event. Not allowed with a CloudEvent, whose key is `source` and `id`.",
    },
    "traceparent": {
        "name": "traceparent",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "W3C trace context, which is passed on to the endpoint. An invalid one is ignored.",
    },
    "limit": _query("limit", _LIMIT, "Items per page."),
    "cursor": _cursor(ID_CURSOR),
    "attempts_cursor": _cursor(ATTEMPTS_CURSOR),
    "follow_cursor": _cursor(FOLLOW_CURSOR),
    "routing_cursor": _cursor(ROUTING_CURSOR),
    "tenant_id": _query(
        "tenant_id",
        {"type": "string", "pattern": NAME_PATTERN},
        "Only this tenant. A key that is bound to a tenant may name that one only.",
    ),
    "subscription_id": _query("subscription_id", _ID, "Only this subscription."),
    "event_type": _query(
        "event_type", _FILTER_TEXT, "Only this event type; of subscriptions, those that receive it."
    ),
    "error_code": _query("error_code", _FILTER_TEXT, "Only this error code."),
    "failed_after": _query("failed_after", _TIME, "At or after this time."),
    "failed_before": _query("failed_before", _TIME, "Before this time."),
    "bulk_status": _query("status", {"enum": [status.value for status in BulkStatus]}, "Only this status."),
    "status_class": _query(
        "status_class", {"enum": [one.value for one in StatusClass]}, "Only responses of this class."
    ),
    "outcome": _query("outcome", {"enum": [one.value for one in Outcome]}, "Only this outcome."),
    "finished_after": _query("finished_after", _TIME, "At or after this time."),
    "finished_before": _query("finished_before", _TIME, "Before this time."),
    "name": {
        "name": "name",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": OWN_TYPE_PATTERN},
        "description": "The event type. A `/` in it is sent as it is, or as `%2F`.",
    },
    "archived": _query("archived", {"type": "boolean"}, "Only types that are archived, or that are not."),
    "requeued": _query("requeued", {"type": "boolean"}, "Only those that were requeued, or were not."),
    "format": _query(
        "format",
        {"enum": [one.value for one in ListFormat], "default": ListFormat.JSON.value},
        "`csv` and `ndjson` export all items instead of a page; `limit` then is the most items, by default all.",
    ),
    "search": _query(
        "search",
        _LONG_TEXT,
        "What a person may have: an event id, whole or shortened to its beginning or its end, an idempotency "
        "key, or the value of an attribute.",
    ),
    "idempotency_key_filter": _query(
        "idempotency_key", _LONG_TEXT, "Only events with this idempotency key, or `id` of a CloudEvent."
    ),
    "attribute": _query(
        "attribute",
        {"type": "string", "pattern": ATTRIBUTE_PATTERN},
        "Only events with this attribute, as `name:value`. A value that is written like a number or a boolean also "
        "finds the string.",
    ),
    "event_status": _query(
        "status",
        {"enum": [one.value for one in EventStatus]},
        "`waiting`: not routed, or a delivery has not ended. `dead`: a dead letter was not requeued. `delivered`: "
        "neither, and all deliveries have succeeded. `none`: routed to no subscription. The last two find events of "
        "the last 24 hours only.",
    ),
    "accepted_after": _query("accepted_after", _TIME, "At or after this time."),
    "accepted_before": _query("accepted_before", _TIME, "Before this time."),
    "window": _query("window", {"enum": ["1h", "24h"], "default": "24h"}, "Length of the window."),
}
