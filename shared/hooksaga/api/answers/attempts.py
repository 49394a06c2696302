"""Attempts: in the log, alone, within an event, and as statistics of a subscription."""

from typing import Annotated

from msgspec import Meta

from hooksaga.api.answers.answer import (
    EXAMPLE_EVENT_ID,
    Answer,
    BulkOperationId,
    Count,
    ErrorCode,
    EventId,
    EventType,
    JobState,
    Page,
    RequeuedFrom,
    ResentFrom,
    RowId,
    SagaId,
    SubscriptionId,
    TenantId,
    Time,
    described,
    next_page,
    one_of,
)
from hooksaga.core.attempts import AttemptTrigger

RequestHeaders = Annotated[
    dict[str, str] | None,
    described(
        "The headers sent, except `user-agent`; secrets are `***`. `null`: nothing was sent, or "
        "an older version made the attempt.",
        {
            "content-type": "application/json",
            "webhook-id": EXAMPLE_EVENT_ID,
            "webhook-timestamp": "1773480413",
            "webhook-signature": "***",
            "hooksaga-event-type": "order.created",
            "hooksaga-attempt": "1",
            "x-shop": "***",
        },
    ),
]
ResponseHeaders = Annotated[
    dict[str, str] | None,
    described(
        "The first 4 KiB of the response's headers, names in lower case; values of cookies are `***`. `null`: no "
        "response, or an older version made the attempt.",
        {"content-type": "text/plain", "x-request-id": "7f3a1c"},
    ),
]
ResponseBody = Annotated[str | None, described("The beginning of the response body, as text.", "ok")]
ResponseTruncated = Annotated[
    bool, described("Whether the response body was longer than the stored part.", False)
]
RetryAfter = Annotated[
    Count | None, described("The wait that the endpoint requested with `Retry-After`, if any.", None)
]


class AttemptFacts(Answer):
    """Fields common to all objects that describe an attempt."""

    id: Annotated[RowId, described("Id.", 9001)]
    status: JobState
    attempt_number: Annotated[Count, described("1 for the first attempt of a saga.", 1)]
    max_attempts: Annotated[
        Count | None,
        described("The limit of attempts when this one began. `null`: made by an older version.", 8),
    ]
    trigger: Annotated[
        str,
        one_of(AttemptTrigger),
        described("The reason for the attempt. A retry is `retry`, whatever started its saga.", "first"),
    ]
    response_status: Annotated[
        Count | None, described("HTTP status of the response; `null` without a response.", 200)
    ]
    error_code: Annotated[
        ErrorCode | None,
        described(
            "The reason of the failure; `null` after a success. `no_public_address` replaces `address_blocked`, "
            "`dns_nxdomain` and `dns_error` for keys without operator rights.",
            None,
        ),
    ]
    duration_ms: Annotated[Count | None, described("Duration of the request.", 81)]
    attempt_at: Annotated[Time, described("Time when the attempt was due.", "2026-03-14T09:26:53.601000Z")]
    leased_at: Annotated[
        Time | None, described("Time when a worker claimed it.", "2026-03-14T09:26:53.604000Z")
    ]
    finished_at: Annotated[Time | None, described("Time of its end.", "2026-03-14T09:26:53.688000Z")]
    worker_id: Annotated[str | None, described("The worker that made the attempt.", "worker-1")]
    claim_count: Annotated[Count, described("Number of claims.", 1)]
    resolved_ip: Annotated[
        str | None, described("The IP address of the endpoint, or the last one tried.", "203.0.113.7")
    ]
    reconnected: Annotated[
        bool,
        described(
            "Whether the request was sent twice, because a reused connection closed before the first byte of "
            "a response. The endpoint may have received both.",
            False,
        ),
    ]


class Attempt(AttemptFacts):
    """An attempt, as part of its event."""

    retry_after_seconds: RetryAfter
    request_headers: RequestHeaders
    response_body: ResponseBody
    response_truncated: ResponseTruncated


class LoggedAttempt(AttemptFacts):
    """An attempt, as part of a list."""

    event_id: Annotated[EventId, described("The event.", EXAMPLE_EVENT_ID)]
    event_type: EventType
    tenant_id: TenantId
    subscription_id: SubscriptionId
    saga_id: SagaId


class WholeAttempt(LoggedAttempt):
    """An attempt with all its fields."""

    requeued_from: RequeuedFrom
    resent_from: ResentFrom
    bulk_operation_id: BulkOperationId
    retry_after_seconds: RetryAfter
    request_headers: RequestHeaders
    response_headers: ResponseHeaders
    response_body: ResponseBody
    response_truncated: ResponseTruncated


class LoggedAttemptList(Page[LoggedAttempt]):
    """A page of finished attempts."""

    next: Annotated[str | None, next_page("00064D002E9B07800000000000002329")]


class FollowedAttempts(Answer):
    """Attempts that finished since the cursor. Some can be repeated."""

    items: Annotated[list[LoggedAttempt], described("Oldest first.")]
    next: Annotated[
        str,
        described(
            "Pass this as `cursor` in the next request.",
            "00064D002E9B07800000000000000000" + "00064D002E9B0780" * 2 + "00000000000003A7" + "0" * 16,
        ),
    ]
    more: Annotated[bool, described("Whether more attempts are available now.", False)]


class LastError(Answer):
    """The most recent failure."""

    code: Annotated[ErrorCode, described("The reason of the failure.", "http_503")]
    at: Annotated[Time, described("Time of its end.", "2026-03-14T08:40:12.104000Z")]


class Backlog(Answer):
    """Waiting deliveries."""

    pending: Annotated[Count, described("Attempts that wait for a worker.", 0)]
    leased: Annotated[Count, described("Attempts in progress.", 2)]
    waiting_retry: Annotated[Count, described("Sagas that wait for a retry.", 1)]


class Latency(Answer):
    """Percentiles of the duration of attempts, in milliseconds."""

    p50: Annotated[Count, described("50th percentile.", 81)]
    p95: Annotated[Count, described("95th percentile.", 240)]
    p99: Annotated[Count, described("99th percentile.", 900)]


class SubscriptionStats(Answer):
    """Statistics of a subscription."""

    subscription_id: SubscriptionId
    window_hours: Annotated[int, one_of((1, 24)), described("Length of the window.", 24)]
    completed: Annotated[Count, described("Successful attempts.", 5210)]
    failed: Annotated[Count, described("Failed attempts.", 14)]
    success_rate: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, described("From 0 to 1; `null` without attempts.", 0.9973)
    ]
    since: Annotated[
        Time | None,
        described(
            "Time of the oldest counted attempt, if the window contains more than were counted; otherwise `null`.",
            None,
        ),
    ]
    last_error: Annotated[LastError | None, described("The most recent failure, whatever its age.")]
    next_retry_at: Annotated[
        Time | None,
        described("Time when the next retry is due; `null` if none waits.", "2026-03-14T09:27:20.000000Z"),
    ]
    backlog: Annotated[Backlog, described("Current counts; 10000 means 10000 or more.")]
    latency_ms: Annotated[
        Latency | None, described("Percentiles of the duration of attempts, including failed ones.")
    ]
