"""Error codes of the HTTP API for well-formed requests that conflict with the stored state."""

from hooksaga.core.problem import Problem

STATE_PROBLEMS = (
    Problem(
        "event_not_found",
        404,
        "No event has this id, or it belongs to another tenant.",
        "Use the `evt_…` id from the response that accepted the event.",
    ),
    Problem(
        "subscription_not_found",
        404,
        "No subscription has this id, it was deleted, or it belongs to another tenant.",
        "Look up the id in the list of subscriptions.",
    ),
    Problem(
        "dead_letter_not_found",
        404,
        "No dead letter has this id, or it belongs to another tenant.",
        "Look up the id in the list of dead letters.",
    ),
    Problem(
        "bulk_operation_not_found",
        404,
        "No bulk operation has this id, or it belongs to another tenant.",
        "Look up the id in the list of bulk operations.",
    ),
    Problem(
        "saga_not_found",
        404,
        "No saga has this id, or it belongs to another tenant.",
        "Take the id from `sagas` of the event.",
    ),
    Problem(
        "attempt_not_found",
        404,
        "No attempt has this id, or it belongs to another tenant.",
        "Take the id from the attempt log, or from `attempts` of the event.",
    ),
    Problem(
        "api_key_not_found",
        404,
        "No key has this id.",
        "List the keys. The list includes revoked keys.",
    ),
    Problem(
        "event_type_not_found",
        404,
        "The catalogue has no event type with this name.",
        "List the event types. Names are compared exactly.",
    ),
    Problem(
        "catalogue_full",
        409,
        "The catalogue has 2,000 event types, or its schemas have 8 MiB together.",
        "Delete event types that are not used any more, or shorten schemas.",
    ),
    Problem(
        "idempotency_conflict",
        409,
        "This idempotency key was used before with another event type, ordering key, payload or attributes.",
        "Use a new key for new content. To repeat a call, send the same bytes.",
    ),
    Problem(
        "subscription_inactive",
        409,
        "The subscription is not active and verified, so a requeue, resend, retry, backfill or test event is not "
        "possible.",
        "Activate and verify the subscription, then repeat the call.",
    ),
    Problem(
        "event_type_not_received",
        409,
        "None of the event types of the subscription matches the `event_type` of the test event.",
        "Send a type that the subscription receives, or leave `event_type` out.",
    ),
    Problem(
        "too_many_secrets",
        409,
        "The subscription already has the maximum number of valid secrets.",
        "Wait until a secret expires, or rotate with `overlap_seconds` 0, which ends all earlier secrets.",
    ),
    Problem(
        "bulk_operation_ended",
        409,
        "The bulk operation is stopped or completed.",
        "Start a new operation. It processes the remaining rows.",
    ),
    Problem(
        "before_retention_horizon",
        409,
        "The backfill starts before the retention horizon, and deliveries before this time may have been deleted.",
        "Start at the time that `detail` names, or later.",
    ),
    Problem(
        "erasure_not_found",
        404,
        "No erasure has this id, or it belongs to another tenant.",
        "Look up the id in the list of erasures.",
    ),
    Problem(
        "tenant_not_found",
        404,
        "The key is bound to another tenant.",
        "Name the tenant of the key, or use a key of all tenants.",
    ),
    Problem(
        "payload_removed",
        409,
        "The payload of the event was removed, because it is older than the time for which payloads are kept.",
        "Send the event again from its source, as a new event.",
    ),
    Problem(
        "event_erased",
        409,
        "The event was erased on request: its payload and everything else that the producer sent are gone.",
        "Nothing can be sent again. If the erasure was a mistake, send a new event from its source.",
    ),
    Problem(
        "public_url_missing",
        409,
        "A link was requested under an untrusted host name, and no public URL is configured.",
        "Set `HOOKSAGA_PUBLIC_URL` to the address under which browsers reach this API, and restart.",
    ),
    Problem(
        "callback_url_changed",
        409,
        "The callback URL changed during its verification.",
        "Verify the subscription again.",
    ),
    Problem(
        "saga_not_waiting",
        409,
        "The saga is in progress or has ended. Only a waiting saga can be canceled or retried now.",
        "Check its status. Repeat the call after the current attempt, or resend the saga once it has ended.",
    ),
    Problem(
        "saga_not_ended",
        409,
        "The saga waits or is in progress. Only a saga that has ended can be resent.",
        "Retry it now, or wait until it is Completed or DeadLettered.",
    ),
    Problem(
        "nothing_waits",
        409,
        "No delivery of the subscription waits for a retry.",
        "Nothing is needed. To send ended deliveries again, requeue or resend them.",
    ),
)
