"""Every error code of the HTTP API with its status, its cause and its cure: the only place where they are explained.

The table in docs/api.md and the section of each code on the page at /v1/docs are made from it. A code has one status.
Tests hold the table against every place that raises one, so a new code belongs here, or they fail.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """`cause`: what happened, `cure`: what the caller does about it. Both are Markdown with no more than `code`."""

    code: str
    status: int
    cause: str
    cure: str


PROBLEMS = (
    Problem(
        "invalid_json",
        400,
        "The body is not JSON: empty, cut short, with `NaN`, or with half of a surrogate pair.",
        "Send one JSON object; `detail` says where it stops being one.",
    ),
    Problem(
        "body_not_utf8",
        400,
        "The body is in another encoding, or begins with a byte-order mark.",
        "Encode it as UTF-8 without a byte-order mark.",
    ),
    Problem(
        "body_too_deep",
        400,
        "The JSON is nested deeper than 64 levels, or one item of a batch is.",
        "Flatten it, or send a link to the data.",
    ),
    Problem(
        "body_not_base64",
        400,
        "A gateway in front marked the body as base64, and it is not.",
        "Send the body as it is; if you run the gateway, let it treat every media type as binary.",
    ),
    Problem(
        "body_incomplete",
        400,
        "The connection ended inside the body.",
        "Repeat the call, with the same `Idempotency-Key`.",
    ),
    Problem(
        "bad_request",
        400,
        "The HTTP request itself is malformed.",
        "Check the request line, the headers and their lengths.",
    ),
    Problem(
        "invalid_host",
        400,
        "The request has no `Host` header, more than one, or one that names no host.",
        "Send one `Host` header with the host of this API, as every HTTP client does by itself.",
    ),
    Problem(
        "unauthorized",
        401,
        "No key came with the request, or one that is not valid (any more).",
        "Send `Authorization: Bearer hs_…` with a key that was not revoked.",
    ),
    Problem(
        "forbidden",
        403,
        "The key is valid and lacks the scope that this route needs.",
        "Use a key with one of the scopes that `detail` names.",
    ),
    Problem(
        "tenant_not_allowed",
        403,
        "The key is bound to one tenant, and the request is about another, or about all.",
        "Leave `tenant_id` out, or use a key of that tenant; for `/v1/stats` one that is bound to none.",
    ),
    Problem(
        "request_blocked",
        403,
        "The firewall in front of the API, on AWS, refused this address: it is known as bad, or it asks too often.",
        "Send fewer requests from one address; if they are few, ask the operator for the firewall's log.",
    ),
    Problem(
        "route_not_found",
        404,
        "There is no such path.",
        "Compare it with the routes of this API; a slash at the end makes another path.",
    ),
    Problem(
        "event_not_found",
        404,
        "No event has this id, or it is another tenant's.",
        "Use the `evt_…` id that the event's acceptance answered.",
    ),
    Problem(
        "subscription_not_found",
        404,
        "No subscription has this id, it was deleted, or it is another tenant's.",
        "Look it up in the list of subscriptions.",
    ),
    Problem(
        "dead_letter_not_found",
        404,
        "No dead letter has this id, or it is another tenant's.",
        "Look it up in the list of dead letters.",
    ),
    Problem(
        "bulk_operation_not_found",
        404,
        "No bulk operation has this id, or it is another tenant's.",
        "Look it up in the list of bulk operations.",
    ),
    Problem(
        "saga_not_found",
        404,
        "No saga has this id, or it is another tenant's.",
        "Take the id from `sagas` of the event.",
    ),
    Problem(
        "attempt_not_found",
        404,
        "No attempt has this id, or it is another tenant's.",
        "Take the id from the attempt log, or from `attempts` of the event.",
    ),
    Problem(
        "api_key_not_found",
        404,
        "No key has this id.",
        "List the keys; one that is revoked already is still listed.",
    ),
    Problem(
        "method_not_allowed",
        405,
        "The path exists, and not with this method.",
        "Use one of the methods in the `Allow` header.",
    ),
    Problem(
        "head_too_slow",
        408,
        "The request line and the headers did not arrive within 10 seconds.",
        "Send them in one go.",
    ),
    Problem(
        "body_too_slow",
        408,
        "The body did not arrive within 30 seconds.",
        "Send it in one go, and repeat the call with the same `Idempotency-Key`.",
    ),
    Problem(
        "idempotency_conflict",
        409,
        "This idempotency key was used before, for another event type or another payload.",
        "Use a new key for new content; to repeat the call, send the same bytes.",
    ),
    Problem(
        "subscription_inactive",
        409,
        "The subscription is not active and verified, so it can have no requeue and no backfill.",
        "Activate and verify it, then repeat the call.",
    ),
    Problem(
        "too_many_secrets",
        409,
        "As many secrets as may sign for a subscription at once have not ended yet.",
        "Wait until one has ended, or rotate with `overlap_seconds` 0, which ends all earlier ones.",
    ),
    Problem(
        "bulk_operation_ended",
        409,
        "The bulk operation is stopped or completed.",
        "Start a new one: it takes up what this one has not done.",
    ),
    Problem(
        "before_retention_horizon",
        409,
        "The backfill begins before a time from which deliveries were deleted, so who got these events is not known.",
        "Begin at the time that `detail` names, or later.",
    ),
    Problem(
        "public_url_missing",
        409,
        "A link was asked for under a name that may be anybody's, and no address is configured.",
        "Set `HOOKSAGA_PUBLIC_URL` to the address under which browsers reach this API, and restart it.",
    ),
    Problem(
        "callback_url_changed",
        409,
        "The callback URL was changed while its verification was under way.",
        "Verify again.",
    ),
    Problem(
        "saga_not_waiting",
        409,
        "The saga is being attempted, or has ended; only one that waits can be canceled.",
        "Look at its status; after the attempt that is under way, try again.",
    ),
    Problem(
        "body_too_large",
        413,
        "The body is larger than the limit that `detail` names.",
        "Send a link to the data, or fewer items in a batch.",
    ),
    Problem(
        "body_compressed",
        415,
        "The body is compressed.",
        "Send it without `Content-Encoding`.",
    ),
    Problem(
        "unsupported_media_type",
        415,
        "The content type is not one that this route takes.",
        "Send `application/json`, or `application/cloudevents+json` to `/v1/events`.",
    ),
    Problem(
        "unsupported_charset",
        415,
        "The content type names a charset other than UTF-8.",
        "Encode the body as UTF-8, and name that charset or none.",
    ),
    Problem(
        "invalid_event",
        422,
        "The event lacks a field, has one that is unknown, or one of the wrong type.",
        "`field` names it and `detail` says the rule.",
    ),
    Problem(
        "invalid_event_type",
        422,
        "`event_type` is empty, too long, or has a character that is not allowed.",
        "Use 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    ),
    Problem(
        "reserved_event_type",
        422,
        "`event_type` begins with `hooksaga.`: such events are made by hooksaga itself.",
        "Use another type; subscribing to these is allowed.",
    ),
    Problem(
        "invalid_tenant_id",
        422,
        "`tenant_id` is empty, too long, or has a character that is not allowed.",
        "Use 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    ),
    Problem(
        "invalid_batch",
        422,
        "`items` holds no event, or more than 500.",
        "Send 1 to 500 items in a call.",
    ),
    Problem(
        "invalid_cloud_event",
        422,
        "An attribute of the CloudEvent is missing or breaks its rule, or the form is not taken.",
        "`field` names the attribute and `detail` says the rule.",
    ),
    Problem(
        "invalid_idempotency_key",
        422,
        "The key is empty, longer than 255, not printable ASCII, given twice, or beside a CloudEvent.",
        "Send one key of 1 to 255 printable ASCII characters, no blank at its ends; a CloudEvent has its own.",
    ),
    Problem(
        "invalid_field",
        422,
        "A field of the body is missing, unknown, of the wrong type or out of bounds.",
        "`field` names it and `detail` says the rule.",
    ),
    Problem(
        "invalid_parameter",
        422,
        "A query parameter is of the wrong form or out of bounds.",
        "`field` names it and `detail` says the rule.",
    ),
    Problem(
        "unknown_parameter",
        422,
        "There is no such query parameter on this route.",
        "Compare `field` with the parameters of the route.",
    ),
    Problem(
        "invalid_cursor",
        422,
        "`cursor` is not one that a list answered.",
        "Pass `next` of the page before as it came, or leave it out for the first page.",
    ),
    Problem(
        "invalid_callback_url",
        422,
        "The URL is not https, not on the public internet, or not one that every parser reads alike.",
        "`detail` says the rule; use a plain `https://` URL.",
    ),
    Problem(
        "verification_failed",
        422,
        "The endpoint could not be called, or did not answer the challenge.",
        "Let it answer 2xx with the challenge and nothing else within 10 seconds, then verify again; `detail` says "
        "what came.",
    ),
    Problem(
        "event_refused",
        422,
        "The database does not take this payload.",
        "Change it; the same payload will be refused again.",
    ),
    Problem(
        "value_refused",
        422,
        "The database does not take one of the values.",
        "Change it; the same value will be refused again.",
    ),
    Problem(
        "too_many_requests",
        429,
        "The gateway's limit of requests per second, on AWS, was reached.",
        "Repeat after `Retry-After`, with the same `Idempotency-Key`; post events in batches.",
    ),
    Problem(
        "head_too_large",
        431,
        "The request line and the headers have more than 64 KiB.",
        "Send fewer or shorter headers; data belongs into the body.",
    ),
    Problem(
        "internal_error",
        500,
        "The fault is ours. It was logged under the `request_id`.",
        "Repeat the call with the same `Idempotency-Key`; if it stays, send us the `request_id`.",
    ),
    Problem(
        "too_many_connections",
        503,
        "The server has no room for another connection; `detail` says what is short. Nothing was read of the request.",
        "Repeat after `Retry-After`, over connections that are kept; as its operator, raise the limit of open files.",
    ),
    Problem(
        "database_unavailable",
        503,
        "The database is away, or takes no writes, for the moment. Whether the call was carried out is not known.",
        "Repeat after `Retry-After`, with the same `Idempotency-Key`.",
    ),
    Problem(
        "queue_unavailable",
        503,
        "The request could not be handed on. Nothing has changed.",
        "Repeat after `Retry-After`.",
    ),
    Problem(
        "function_unavailable",
        503,
        "The gateway, on AWS, got no answer from the function behind it.",
        "Repeat after `Retry-After`, with the same `Idempotency-Key`.",
    ),
    Problem(
        "timeout",
        504,
        "The gateway, on AWS, waited too long for the function behind it. The call may have been carried out.",
        "Repeat it with the same `Idempotency-Key`: what was accepted is not accepted twice.",
    ),
)
"""By status, then in the order in which a request meets them."""

BY_CODE = {problem.code: problem for problem in PROBLEMS}
