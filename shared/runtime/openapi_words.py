"""What the OpenAPI document says of groups and fields, in the words of docs/glossary.md.

A field is looked up as `Schema.field`, then as `field`. Words that a schema brings along are kept.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

GROUPS = {
    "events": "They come in one by one, in batches or as CloudEvents, and each can be followed to its last attempt.",
    "subscriptions": "Who gets which events, where, and how often a failed delivery is tried again.",
    "dead-letters": "Deliveries whose attempts ran out. Each keeps the payload and can be requeued as a new saga.",
    "sagas": "A saga is one event on its way to one subscription.",
    "service": "How the system does, and what describes it.",
}
"""A group without words is allowed."""

_OF_SERVICE = frozenset({"stats", "openapi.json", "docs", "healthz"})

OPERATIONS = {
    "post /v1/events": "Once it is answered, the event is stored and will be delivered. With an `Idempotency-Key` the "
    "call is safe to repeat: the same bytes get the first answer again, other content is refused. CloudEvents in "
    "binary mode are taken as well.",
    "post /v1/events/batch": "All in one transaction. An item that is refused is answered in its place and rejects no "
    "other.",
    "get /v1/events/{id}": "Follows the event to every subscription and every attempt.",
    "get /v1/events/{id}/routing": "With the facts of the moment of routing, whatever has changed since. A page may be "
    "short: only `next: null` is the end.",
    "post /v1/subscriptions": "It gets nothing until its address is verified.",
    "get /v1/subscriptions": "Those that were deleted are not listed.",
    "patch /v1/subscriptions/{id}": "Fields that are left out stay as they are. A new `callback_url` waits in "
    "`pending_callback_url` until it is verified; deliveries go on to the old one meanwhile.",
    "delete /v1/subscriptions/{id}": "It is hidden from lists; what was delivered stays on record.",
    "post /v1/subscriptions/{id}/verify": "The endpoint has to answer a signed POST with the challenge in it. An "
    "address that is verified already is not asked again.",
    "post /v1/dead-letters/requeue": "The oldest first. Every field that is given must match; `dry_run` only counts.",
    "post /v1/dead-letters/{id}/requeue": "Repeating the call answers the same saga: nothing is sent twice for it.",
    "post /v1/sagas/{id}/cancel": "The delivery ends as a dead letter with `canceled`. One that is being attempted is "
    "refused.",
    "get /v1/stats": "Of all tenants, so the key must be bound to none.",
}

ANSWERS = {
    "post /v1/events 202": "The event is stored.",
    "post /v1/events 200": "The key was used before for the same content: the first answer, with `duplicate`.",
    "post /v1/dead-letters/{id}/requeue 201": "The new saga.",
    "post /v1/dead-letters/{id}/requeue 200": "It was requeued before: the same saga.",
    "post /v1/sagas/{id}/cancel 202": "It was asked to end; the state is that of this moment.",
    "post /v1/sagas/{id}/cancel 200": "It was canceled before.",
    "get /healthz 200": "The database answers.",
}

FIELDS = {
    "active": "Whether it takes deliveries. `false` stops them at once.",
    "attempt_at": "When the attempt was due.",
    "attempt_count": "Attempts that have ended.",
    "attempt_number": "1 for the first attempt of a saga.",
    "attempts": "Every attempt, oldest first.",
    "base_delay_seconds": "The wait after the first failure; it doubles with each further one, up to an hour. "
    "`null`: the system's default.",
    "callback_url": "Where deliveries are POSTed: `https://`, on the public internet, at most 500 characters.",
    "code": "The error's stable word. Programs compare this.",
    "correlation_id": "The trace id of the event: its producer's, or the event's own id.",
    "created_at": "When it was stored.",
    "data": "The payload, kept to the byte; `null` where it is missing.",
    "datacontenttype": "`application/json`, or left out.",
    "dead_letter_id": "The dead letter that was requeued.",
    "dead_letters_24h": "Dead letters of the last 24 hours.",
    "delivered_last_minute": "Sagas that were completed in the last minute.",
    "description": "A note for people.",
    "detail": "What is wrong with this request, for people.",
    "dry_run": "Count only; requeue nothing.",
    "duplicate": "Whether the idempotency key was used before: then this is the first answer.",
    "duration_ms": "How long the request took.",
    "eligible_since": "Events accepted since then are delivered to it; `null` while it is inactive or not verified.",
    "error_code": "The word for how the attempt failed; `null` when it did not.",
    "event_id": "The event that was to be delivered.",
    "event_type": "Matched exactly: 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    "failed_after": "Not before this time.",
    "failed_at": "When the last attempt failed.",
    "failed_before": "Before this time.",
    "field": "The field, header or parameter that is at fault, where there is one.",
    "final_error_code": "The word of the last failure; kept after a later success.",
    "finished_at": "When it ended.",
    "headers": "Added to each delivery. At most 20; names that the sender sets itself are refused.",
    "id": "The number that names it.",
    "items": "The rows of this page.",
    "jobs_leased": "Attempts under way.",
    "jobs_pending": "Attempts that wait for a worker.",
    "leased_at": "When a worker took it.",
    "limit": "Requeue at most so many, the oldest first.",
    "matched": "Dead letters that match and were not requeued before.",
    "max_retry_limit": "Attempts in all, before a delivery becomes a dead letter. `null`: the system's default.",
    "next": "To be passed as `cursor` for the next page; `null` on the last.",
    "next_attempt_at": "When the next attempt is due.",
    "oldest_due_seconds": "How long the oldest due saga has waited; `null` when none is due.",
    "outbox": "Events that wait to be routed.",
    "overlap_seconds": "How long the old secret goes on signing beside the new one.",
    "payload": "Any JSON value, kept, signed and sent to the byte.",
    "payload_snapshot": "The event's payload, to the byte.",
    "pending_callback_url": "A new address that gets nothing until it is verified, and then takes the old one's place.",
    "request_id": "Names the request in our logs.",
    "requeued": "Dead letters that were requeued by this call.",
    "requeued_as": "The saga that it was requeued as.",
    "requeued_from": "The dead letter that this saga was made from.",
    "response_body": "The beginning of the answer, as text.",
    "response_status": "The receiver's HTTP status; `null` when none came.",
    "results_unapplied": "Attempts whose result the saga has not taken yet.",
    "saga_id": "The saga.",
    "sagas": "One for each subscription that the event was routed to, and one for each requeue.",
    "sagas_due": "Sagas whose next attempt is due now.",
    "sagas_waiting": "Sagas that wait for their first or next attempt.",
    "secret": "Signs the deliveries. Shown this once.",
    "skipped": "Dead letters that match and could not be requeued: their subscription is not active and verified.",
    "source": "With `id` the idempotency key.",
    "specversion": "The version of CloudEvents.",
    "status": "Where it stands.",
    "subscription_id": "The subscription.",
    "tenant_id": "Whose it is. Left out: the key's own tenant, or `default`.",
    "tenantid": "As `tenant_id` of an event.",
    "traceparent": "The event's trace, before that of the request.",
    "timeout_seconds": "How long one attempt may take. `null`: the system's default.",
    "title": "The code in words.",
    "type": "Leads to the explanation of the error on this page.",
    "updated_at": "When it was last changed.",
    "verified": "Whether `callback_url` has answered the challenge.",
    "worker_id": "Which worker made the attempt.",
    "AcceptedEvent.id": "The event's id, everywhere: also the `webhook-id` that receivers see.",
    "BatchAnswer.items": "One answer for each item, in order: an accepted event, or `{error}`.",
    "CanceledSaga.status": "The saga's state at this moment.",
    "CloudEvent.id": "With `source` the idempotency key.",
    "CloudEvent.type": "The event type.",
    "DeadLetter.saga_id": "The saga that failed.",
    "Event.id": "The event's id, everywhere: also the `webhook-id` that receivers see.",
    "Health.status": "Always `ok`; while the database is away the answer is 503.",
    "ItemProblem.status": "What the HTTP status would be, were the item alone.",
    "NewEvent.tenant_id": "For whom. Left out: the key's own tenant, or `default`.",
    "NewEvents.items": "The events, each as for `POST /v1/events`, with an `idempotency_key` if it wants one.",
    "OpenApi.openapi": "The version of OpenAPI.",
    "OpenApi.paths": "The routes.",
    "Problem.status": "The HTTP status.",
    "RequeueFilter.error_code": "Only those that ended with this word.",
    "RequeueFilter.event_type": "Only those of this type.",
    "RequeueFilter.subscription_id": "Only those of this subscription.",
    "Requeued.saga_id": "The new saga.",
    "SubscriptionChange.pending_callback_url": "`null` drops the new address that waits.",
    "Subscription.event_type": "Which events it gets.",
}


def words_for_operation(method: str, path: str) -> str:
    """What is to know of an operation beyond its summary; empty where nothing is."""
    return OPERATIONS.get(f"{method} {path}", "")


def words_for_answer(method: str, path: str, status: str) -> str:
    """What an answer with this status means, where an operation has several."""
    return ANSWERS.get(f"{method} {path} {status}", "")


def group_of(path: str) -> str:
    """The tag of a path: its first part behind the version, but for what is about the service itself."""
    first = path.removeprefix("/v1").split("/")[1]
    return "service" if first in _OF_SERVICE else first


def describe_fields(schemas: Mapping[str, Json]) -> Json:
    """The schemas with words for their fields. Schemas are shared between fields, so none is changed in place."""
    return {name: _described(name, schema) for name, schema in schemas.items()}


def words_for(schema_name: str, field: str) -> str:
    """What a field of a schema means; empty where nothing is known of it."""
    return FIELDS.get(f"{schema_name}.{field}") or FIELDS.get(field, "")


def _described(name: str, schema: Json) -> Json:
    if "properties" not in schema:
        return schema
    fields: Json = {
        field: {"description": words, **content} if (words := words_for(name, field)) else content
        for field, content in schema["properties"].items()
    }
    return {**schema, "properties": fields}
