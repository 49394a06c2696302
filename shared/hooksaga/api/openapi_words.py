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
    "attempts": "The log of every POST: when it was made, why, and what came of it.",
    "bulk-operations": "Requeues of many dead letters, and backfills of older events, which go on by themselves at a "
    "steady rate, through crashes and restarts, and never flood an endpoint.",
    "portal-links": "A signed link opens one tenant's own subscriptions and deliveries as pages, for your own users.",
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
    "`pending_callback_url` until it is verified; deliveries go on to the old one meanwhile. Switching on one that the "
    "health monitor switched off also answers what it `missed`.",
    "delete /v1/subscriptions/{id}": "It is hidden from lists; what was delivered stays on record.",
    "post /v1/subscriptions/{id}/verify": "The endpoint has to answer a signed POST with the challenge that it "
    "carries, and nothing else. An address that is verified already is not asked again.",
    "get /v1/subscriptions/{id}/health": "The failures since the last success, as far as they are counted, a minute "
    "behind. An endpoint that answers 410, or only fails for days, has its subscription switched off.",
    "post /v1/portal-links": "For your own signed-in users: make a new one each time. Its pages can do what this key "
    "can, for this tenant only, and end when the key is revoked.",
    "post /v1/dead-letters/requeue": "The oldest first. Every field that is given must match; `dry_run` only counts. "
    "What was `canceled` is left out, unless `error_code` names it.",
    "post /v1/dead-letters/{id}/requeue": "Repeating the call answers the same saga: nothing is sent twice for it.",
    "post /v1/bulk-operations": "Each match gets one new saga, `rate_per_second` of them, until all have one; "
    "a requeue leaves out what was `canceled`, unless `error_code` names it. An equal "
    "call while the operation has not ended answers the same operation. `dry_run` only counts.",
    "get /v1/bulk-operations/{id}": "`lanes` are its subscriptions, at most 100, those with most to do first.",
    "patch /v1/bulk-operations/{id}": "It holds for what is not started yet.",
    "post /v1/bulk-operations/{id}/pause": "What is started goes on: a few seconds of its rate, on AWS up to 75.",
    "post /v1/bulk-operations/{id}/stop": "What is started goes on.",
    "post /v1/sagas/{id}/cancel": "The delivery ends as a dead letter with `canceled`. One that is being attempted is "
    "refused.",
    "get /v1/attempts": "By any of the filters. One call passes 10,000 attempts at the most: where little matches, a "
    "page may be short, or empty, and still have a `next`.",
    "get /v1/attempts/follow": "Without a cursor: from now on. Oldest first; pass `next` each time, at once while "
    "`more` is true. An attempt may come again, for up to a minute: drop repeats by `id`.",
    "get /v1/attempts/{id}": "In any state. Values that only the receiver may know are `***`.",
    "get /v1/subscriptions/{id}/stats": "Counted over the newest 10,000 attempts of the window.",
    "get /v1/stats": "Of all tenants, so the key must be bound to none.",
}

ANSWERS = {
    "post /v1/events 202": "The event is stored.",
    "post /v1/events 200": "The key was used before for the same content: the first answer, with `duplicate`.",
    "post /v1/dead-letters/{id}/requeue 201": "The new saga.",
    "post /v1/dead-letters/{id}/requeue 200": "It was requeued before: the same saga.",
    "post /v1/bulk-operations 201": "The operation, which has begun.",
    "post /v1/bulk-operations 200": "The same operation as before, as it has not ended; or the counts of a dry run.",
    "post /v1/sagas/{id}/cancel 202": "It was asked to end; the state is that of this moment.",
    "post /v1/sagas/{id}/cancel 200": "It was canceled before.",
    "get /healthz 200": "The database answers.",
}

_SKIPPED = "Requeued or routed by somebody else, or left since the subscription takes nothing any more."

FIELDS = {
    "active": "Whether it takes deliveries. `false` stops them at once.",
    "at_least": "Whether there may be more of both than was looked at.",
    "attempt_at": "When the attempt was due.",
    "attempt_count": "Attempts that have ended.",
    "attempt_number": "1 for the first attempt of a saga.",
    "attempts": "Every attempt, oldest first.",
    "backlog": "What waits now; 10000 means that or more.",
    "base_delay_seconds": "The wait after the first failure; it doubles with each further one, up to an hour. "
    "`null`: the system's default.",
    "bulk_operation_id": "The bulk operation that started the saga; `null` for all others.",
    "callback_url": "Where deliveries are POSTed: `https://`, on the public internet, at most 500 characters.",
    "claim_count": "How often a worker took it.",
    "colour": "Of the pages' head, as `#rrggbb`.",
    "completed": "Attempts that ended well.",
    "code": "The error's stable word. Programs compare this.",
    "created": "Whether this call started it; if not, an equal one did before.",
    "correlation_id": "The trace id of the event: its producer's, or the event's own id.",
    "consecutive_failures": "Failed attempts since the last success.",
    "counted_until": "Attempts that finished until then are counted.",
    "created_at": "When it was stored.",
    "created_by": "The name of the key that started it, or who asked the admin function.",
    "created_by_key_id": "The key that started it; `null` when it was not the API.",
    "data": "The payload, kept to the byte; `null` where it is missing.",
    "data_base64": "In place of `data`: its JSON text in base64.",
    "datacontenttype": "`application/json` or another kind of JSON, in UTF-8. `null` or left out: `application/json`.",
    "dataschema": "Read and not kept.",
    "subject": "Read and not kept.",
    "time": "Read and not kept.",
    "dead_letter_id": "The dead letter that was requeued.",
    "dead_letters_24h": "Dead letters of the last 24 hours.",
    "delivered_last_minute": "Sagas that were completed in the last minute.",
    "description": "A note for people.",
    "detail": "What is wrong with this request, for people.",
    "disabled_at": "When the health monitor switched it off; `null` while it did not.",
    "disabled_reason": "`gone`: it answered 410. `failing`: it only failed for days.",
    "dry_run": "Count only; requeue nothing.",
    "duplicate": "Whether the idempotency key was used before: then this is the first answer.",
    "duration_ms": "How long the request took.",
    "eligible_since": "Events accepted since then are delivered to it; `null` while it is inactive or not verified.",
    "embed_origin": "The one origin whose pages may show these in a frame, such as `https://app.example.com`.",
    "error_code": "How the attempt failed; `null` when it did not. `no_public_address` stands for `address_blocked`, "
    "`dns_nxdomain` and `dns_error` where the key is not an operator's.",
    "event_id": "The event that was to be delivered.",
    "event_type": "Matched exactly: 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    "expires_at": "When it opens nothing any more. Pages that were opened before go on for an hour.",
    "failed": "Attempts that failed.",
    "failed_after": "Not before this time.",
    "failed_at": "When the last attempt failed.",
    "failed_before": "Before this time.",
    "failing_since": "When its failures began.",
    "field": "The field, header or parameter that is at fault, where there is one.",
    "final_error_code": "The word of the last failure; kept after a later success.",
    "done": "Sagas that were started.",
    "filter": "What it is about. Every field that is given must match.",
    "finished_at": "When it ended.",
    "first_failure_at": "When the first of these failures ended; `null` where there is none.",
    "headers": "Added to each delivery. At most 20; names that the sender sets itself are refused. Values are "
    "write-only: answers show `***` for each.",
    "SubscriptionChange.headers": "Those to change, by name: a value sets one, `null` removes it, `***` keeps it, and "
    "what is not named stays. `null` in place of the object removes all.",
    "id": "The number that names it.",
    "items": "The rows of this page.",
    "kind": "`requeue`: dead letters get new sagas. `backfill`: events that a subscription never got get their first.",
    "lanes": "How far it is with each subscription.",
    "last_step_at": "When it last went on; `null` before it first did.",
    "jobs_leased": "Attempts under way.",
    "jobs_pending": "Attempts that wait for a worker.",
    "last_error": "The newest failure, however old.",
    "latency_ms": "Percentiles of the time that attempts took, failed ones included.",
    "last_error_code": "The word of the last failure; kept after a later success.",
    "last_failure_at": "When an attempt last failed.",
    "last_success_at": "When an attempt last succeeded.",
    "leased_at": "When a worker took it.",
    "limit": "Requeue at most so many, the oldest first.",
    "matched": "Dead letters that match and were not requeued before.",
    "logo_url": "A picture for the pages' head, `https://`.",
    "max_attempts": "The limit when the attempt began. `null`: made by an older version.",
    "max_retry_limit": "Attempts in all, before a delivery becomes a dead letter. `null`: the system's default.",
    "more": "Whether there are others to be had at once.",
    "missed": "What it missed while it was switched off; only in the answer that switches it on again.",
    "minutes": "How long the link opens the pages.",
    "name": "What the pages call themselves.",
    "next": "To be passed as `cursor` for the next page; `null` on the last.",
    "next_attempt_at": "When the next attempt is due.",
    "next_retry_at": "When the next retry is due; `null` when none waits.",
    "oldest_due_seconds": "How long the oldest due saga has waited; `null` when none is due.",
    "outbox": "Events that wait to be routed.",
    "overlap_seconds": "How long the old secret goes on signing beside the new one.",
    "payload": "Any JSON value, kept, signed and sent to the byte.",
    "payload_snapshot": "The event's payload, to the byte.",
    "pending_callback_url": "A new address that gets nothing until it is verified, and then takes the old one's place.",
    "rate_per_second": "Sagas started per second, of all subscriptions together.",
    "reason": "Why, for the record.",
    "reconnected": "Whether a kept connection ended without a byte of an answer, so that the request was sent again "
    "over a new one. The receiver may have got it twice.",
    "request_headers": "As they were sent, but for `user-agent`; secrets are `***`. `null`: nothing was sent, or "
    "an older version made it.",
    "request_id": "Names the request in our logs.",
    "requeued": "Dead letters that were requeued by this call.",
    "requeued_as": "The saga that it was requeued as.",
    "requeued_from": "The dead letter that this saga was made from.",
    "resolved_ip": "The address that was called, or tried last.",
    "response_body": "The beginning of the answer, as text.",
    "response_status": "The receiver's HTTP status; `null` when none came.",
    "response_truncated": "Whether there was more than is kept.",
    "results_unapplied": "Attempts whose result the saga has not taken yet.",
    "retry_after_seconds": "What the receiver asked for, if it did.",
    "saga_id": "The saga.",
    "sagas": "One for each subscription that the event was routed to, and one for each requeue.",
    "sagas_due": "Sagas whose next attempt is due now.",
    "sagas_waiting": "Sagas that wait for their first or next attempt.",
    "secret": "Signs the deliveries. Shown this once.",
    "since": "The oldest attempt that was counted, where the window holds more; else `null`.",
    "skipped": "Dead letters that match and could not be requeued: their subscription is not active and verified.",
    "source": "With `id` the idempotency key.",
    "specversion": "The version of CloudEvents.",
    "status": "Where it stands.",
    "success_rate": "From 0 to 1; `null` without an attempt.",
    "subscription_id": "The subscription.",
    "tenant_id": "Whose it is. Left out: the key's own tenant, or `default`.",
    "pruned_before": "Deliveries of this event that ended before this time may have been deleted as too old. `null`: "
    "nothing of it was.",
    "tenantid": "As `tenant_id` of an event.",
    "traceparent": "The event's trace, before that of the request.",
    "timeout_seconds": "How long one attempt may take. `null`: the system's default.",
    "title": "The code in words.",
    "trigger": "Why it was made. A retry is a `retry`, however its saga began.",
    "type": "Leads to the explanation of the error on this page.",
    "url": "To be opened in a browser, or in a frame of `embed_origin`. Whoever has it gets in. Begins with "
    "HOOKSAGA_PUBLIC_URL.",
    "updated_at": "When it was last changed.",
    "verified": "Whether `callback_url` has answered the challenge.",
    "window_hours": "How far back was looked.",
    "will_be_disabled_at": "When it is switched off if it only fails until then; `null` where it will not be.",
    "worker_id": "Which worker made the attempt.",
    "AcceptedEvent.id": "The event's id, everywhere: also the `webhook-id` that receivers see.",
    "BatchAnswer.items": "One answer for each item, in order: an accepted event, or `{error}`.",
    "BulkOperation.matched": "Dead letters, or events, that the filter meant when it began.",
    "BulkOperation.skipped": _SKIPPED,
    "BulkOperation.tenant_id": "Whose rows; `null`: all tenants'.",
    "BulkOperationWithLanes.matched": "Dead letters, or events, that the filter meant when it began.",
    "BulkOperationWithLanes.skipped": _SKIPPED,
    "BulkOperationWithLanes.tenant_id": "Whose rows; `null`: all tenants'.",
    "BulkOperationStarted.matched": "Dead letters, or events, that the filter meant when it began.",
    "BulkOperationStarted.skipped": _SKIPPED,
    "BulkOperationStarted.tenant_id": "Whose rows; `null`: all tenants'.",
    "DeadLetter.reason": "Why no other attempt was made, where the last attempt did not end it: the subscription took "
    "nothing, or an operator canceled it.",
    "DeadLetterWithPayload.reason": "As in the list.",
    "CanceledSaga.status": "The saga's state at this moment.",
    "CloudEvent.id": "With `source` the idempotency key.",
    "CloudEvent.type": "The event type.",
    "DeadLetter.saga_id": "The saga that failed.",
    "BulkCount.dry_run": "Always `true`.",
    "BulkCount.kind": "What was asked for.",
    "BulkCount.matched": "Dead letters, or events, that an operation would start sagas for.",
    "BulkCount.seconds": "How long it takes at least to start them all.",
    "BulkCount.subscriptions": "Of so many subscriptions.",
    "BulkFilter.error_code": "Only dead letters that ended with this word.",
    "BulkFilter.event_type": "Only dead letters of this type.",
    "BulkFilter.failed_after": "Dead letters that failed not before this time.",
    "BulkFilter.failed_before": "Dead letters that failed before this time.",
    "BulkFilter.since": "A backfill's events: accepted not before this time. It may not be in the future.",
    "BulkFilter.subscription_id": "Only dead letters of this subscription; or the subscription to be backfilled.",
    "BulkFilter.until": "A backfill's events: accepted before this time. Left out: up to now.",
    "BulkLane.done": "Sagas that were started.",
    "BulkLane.finished": "Whether nothing is left to do for this subscription.",
    "BulkLane.matched": "Dead letters, or events, that the filter meant when the operation began.",
    "BulkLane.skipped": _SKIPPED,
    "Event.id": "The event's id, everywhere: also the `webhook-id` that receivers see.",
    "FollowedAttempts.next": "To be passed as `cursor` each time.",
    "Health.status": "Always `ok`; while the database is away the answer is 503.",
    "ItemProblem.status": "What the HTTP status would be, were the item alone.",
    "NewBulkOperation.dry_run": "Count only; start nothing.",
    "Missed.since": "When it was switched off.",
    "Missed.dead_letters": "Deliveries that died since `failing_since` and were not requeued.",
    "Missed.events": "Events of its type that were accepted since `since`.",
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
