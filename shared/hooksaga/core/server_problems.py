"""Error codes of the HTTP API for limits and failures of the server."""

from hooksaga.core.problem import Problem

SERVER_PROBLEMS = (
    Problem(
        "too_many_requests",
        429,
        "The gateway's rate limit, on AWS, was reached.",
        "Repeat after `Retry-After` with the same `Idempotency-Key`. Post events in batches.",
    ),
    Problem(
        "internal_error",
        500,
        "The server failed. Its log has the error under the `request_id`.",
        "Repeat the call with the same `Idempotency-Key`. If the error persists, report the `request_id`.",
    ),
    Problem(
        "too_many_connections",
        503,
        "The server cannot accept another connection; `detail` gives the reason. It read nothing of the request.",
        "Repeat after `Retry-After`, and reuse connections. As the operator, raise the limit of open files.",
    ),
    Problem(
        "database_unavailable",
        503,
        "The database is unavailable or accepts no writes. The outcome of the call is unknown.",
        "Repeat after `Retry-After` with the same `Idempotency-Key`.",
    ),
    Problem(
        "queue_unavailable",
        503,
        "The request could not be sent to its queue. Nothing has changed.",
        "Repeat after `Retry-After`.",
    ),
    Problem(
        "function_unavailable",
        503,
        "The gateway, on AWS, got no response from the function.",
        "Repeat after `Retry-After` with the same `Idempotency-Key`.",
    ),
    Problem(
        "timeout",
        504,
        "The gateway, on AWS, timed out waiting for the function. The call may have succeeded.",
        "Repeat the call with the same `Idempotency-Key`. An accepted event is not stored twice.",
    ),
)
