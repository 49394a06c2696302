"""Answers about attempts: as the log lists them, shown alone, within an event, and summed up for a subscription."""

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
    RowId,
    SagaId,
    SubscriptionId,
    TenantId,
    Time,
    one_of,
    said,
)
from hooksaga.core.attempts import AttemptTrigger

RequestHeaders = Annotated[
    dict[str, str] | None,
    said(
        "As they were sent, but for `user-agent`; secrets are `***`. `null`: nothing was sent, or "
        "an older version made it.",
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
ResponseBody = Annotated[str | None, said("The beginning of the answer, as text.", "ok")]
ResponseTruncated = Annotated[bool, said("Whether there was more than is kept.", False)]
RetryAfter = Annotated[Count | None, said("What the receiver asked for, if it did.", None)]


class AttemptFacts(Answer):
    """What every answer tells of an attempt."""

    id: Annotated[RowId, said("The number that names it.", 9001)]
    status: JobState
    attempt_number: Annotated[Count, said("1 for the first attempt of a saga.", 1)]
    max_attempts: Annotated[
        Count | None, said("The limit when the attempt began. `null`: made by an older version.", 8)
    ]
    trigger: Annotated[
        str,
        one_of(AttemptTrigger),
        said("Why it was made. A retry is a `retry`, however its saga began.", "first"),
    ]
    response_status: Annotated[Count | None, said("The receiver's HTTP status; `null` when none came.", 200)]
    error_code: Annotated[
        ErrorCode | None,
        said(
            "How the attempt failed; `null` when it did not. `no_public_address` stands for `address_blocked`, "
            "`dns_nxdomain` and `dns_error` where the key is not an operator's.",
            None,
        ),
    ]
    duration_ms: Annotated[Count | None, said("How long the request took.", 81)]
    attempt_at: Annotated[Time, said("When the attempt was due.", "2026-03-14T09:26:53.601000Z")]
    leased_at: Annotated[Time | None, said("When a worker took it.", "2026-03-14T09:26:53.604000Z")]
    finished_at: Annotated[Time | None, said("When it ended.", "2026-03-14T09:26:53.688000Z")]
    worker_id: Annotated[str | None, said("Which worker made the attempt.", "worker-1")]
    claim_count: Annotated[Count, said("How often a worker took it.", 1)]
    resolved_ip: Annotated[str | None, said("The address that was called, or tried last.", "203.0.113.7")]
    reconnected: Annotated[
        bool,
        said(
            "Whether a kept connection ended without a byte of an answer, so that the request was sent again "
            "over a new one. The receiver may have got it twice.",
            False,
        ),
    ]


class Attempt(AttemptFacts):
    """An attempt within its event."""

    retry_after_seconds: RetryAfter
    request_headers: RequestHeaders
    response_body: ResponseBody
    response_truncated: ResponseTruncated


class LoggedAttempt(AttemptFacts):
    """An attempt as lists show it."""

    event_id: Annotated[EventId, said("The event that was to be delivered.", EXAMPLE_EVENT_ID)]
    event_type: EventType
    tenant_id: TenantId
    subscription_id: SubscriptionId
    saga_id: SagaId


class WholeAttempt(LoggedAttempt):
    """An attempt as it is shown alone."""

    requeued_from: RequeuedFrom
    bulk_operation_id: BulkOperationId
    retry_after_seconds: RetryAfter
    request_headers: RequestHeaders
    response_body: ResponseBody
    response_truncated: ResponseTruncated


class LoggedAttemptList(Page[LoggedAttempt]):
    """A page of finished attempts."""

    next: Annotated[
        str | None,
        said(
            "To be passed as `cursor` for the next page; `null` on the last.",
            "00064D002E9B07800000000000002329",
        ),
    ]


class FollowedAttempts(Answer):
    """Attempts that have finished since the cursor, and some of before again."""

    items: Annotated[list[LoggedAttempt], said("Oldest first.")]
    next: Annotated[
        str,
        said(
            "To be passed as `cursor` each time.",
            "00064D002E9B07800000000000000000" + "00064D002E9B0780" * 2 + "00000000000003A7" + "0" * 16,
        ),
    ]
    more: Annotated[bool, said("Whether there are others to be had at once.", False)]


class LastError(Answer):
    """The newest failure."""

    code: Annotated[ErrorCode, said("How the attempt failed.", "http_503")]
    at: Annotated[Time, said("When it ended.", "2026-03-14T08:40:12.104000Z")]


class Backlog(Answer):
    """Deliveries that wait."""

    pending: Annotated[Count, said("Attempts that wait for a worker.", 0)]
    leased: Annotated[Count, said("Attempts under way.", 2)]
    waiting_retry: Annotated[Count, said("Sagas that wait for a retry.", 1)]


class Latency(Answer):
    """Milliseconds within which so many of a hundred attempts ended."""

    p50: Annotated[Count, said("Half of them.", 81)]
    p95: Annotated[Count, said("95 of 100.", 240)]
    p99: Annotated[Count, said("99 of 100.", 900)]


class SubscriptionStats(Answer):
    """How a subscription is doing."""

    subscription_id: SubscriptionId
    window_hours: Annotated[int, one_of((1, 24)), said("How far back was looked.", 24)]
    completed: Annotated[Count, said("Attempts that ended well.", 5210)]
    failed: Annotated[Count, said("Attempts that failed.", 14)]
    success_rate: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, said("From 0 to 1; `null` without an attempt.", 0.9973)
    ]
    since: Annotated[
        Time | None,
        said("The oldest attempt that was counted, where the window holds more; else `null`.", None),
    ]
    last_error: Annotated[LastError | None, said("The newest failure, however old.")]
    next_retry_at: Annotated[
        Time | None,
        said("When the next retry is due; `null` when none waits.", "2026-03-14T09:27:20.000000Z"),
    ]
    backlog: Annotated[Backlog, said("What waits now; 10000 means that or more.")]
    latency_ms: Annotated[
        Latency | None, said("Percentiles of the time that attempts took, failed ones included.")
    ]
