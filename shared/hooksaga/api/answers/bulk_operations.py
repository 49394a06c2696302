"""Bulk operations and their dry run."""

from typing import Annotated, Any

from hooksaga.api.answers.answer import (
    Answer,
    Count,
    Name,
    Page,
    RowId,
    SubscriptionId,
    Time,
    always,
    described,
    one_of,
)
from hooksaga.core.bulk import KIND_WORDS, BulkKind, BulkStatus, StopReason

Kind = Annotated[
    str,
    one_of(BulkKind),
    described(KIND_WORDS, "requeue"),
]
Rate = Annotated[float, described("Sagas started per second, for all subscriptions together.", 20.0)]
Matched = Annotated[
    Count, described("Dead letters, events or deliveries that matched the filter at the start.", 12000)
]
Done = Annotated[Count, described("Sagas started.", 4260)]
Skipped = Annotated[
    Count,
    described(
        "Matches without a new saga: requeued or routed meanwhile, or the subscription is no longer eligible.",
        2,
    ),
]


Delivered = Annotated[Count, described("Of the sagas started: delivered.", 4201)]
FailedAgain = Annotated[Count, described("Of the sagas started: failed, and are dead letters.", 11)]
UnderWay = Annotated[Count, described("Of the sagas started: not ended yet.", 48)]
Retrying = Annotated[Count, described("Of those under way: wait for a retry after a failed attempt.", 6)]


class BulkLane(Answer):
    """Progress of an operation for one subscription."""

    subscription_id: Annotated[SubscriptionId, described("The subscription.", 8)]
    matched: Matched
    done: Done
    skipped: Skipped
    delivered: Delivered
    failed: FailedAgain
    under_way: UnderWay
    retrying: Retrying
    finished: Annotated[bool, described("Whether the operation is finished for this subscription.", False)]


class BulkOperation(Answer):
    """A requeue of many dead letters, a resend of many deliveries, or a backfill of events, at a given rate."""

    id: Annotated[RowId, described("Id.", 3)]
    kind: Kind
    status: Annotated[str, one_of(BulkStatus), described("Current state.", "Running")]
    tenant_id: Annotated[Name | None, described("The tenant; `null`: all tenants.", None)]
    filter: Annotated[
        dict[str, Any],
        described("The filter. All given fields must match.", {"error_code": "http_503"}),
    ]
    rate_per_second: Rate
    reason: Annotated[str, described("The reason given by the caller.", "the receiver is back")]
    created_by: Annotated[
        str,
        described("Name of the API key that started it, or of the caller of the admin function.", "on-call"),
    ]
    created_by_key_id: Annotated[
        RowId | None,
        described("The API key that started it; `null` if it was not started through the API.", 2),
    ]
    matched: Matched
    done: Done
    skipped: Skipped
    delivered: Delivered
    failed: FailedAgain
    under_way: UnderWay
    retrying: Retrying
    stop_reason: Annotated[
        Annotated[str, one_of(StopReason)] | None,
        described(
            "Why it stopped by itself; `null` if it did not. `failing`: at least 10 of its deliveries, and 90 % of "
            "those that were tried, had failed.",
            None,
        ),
    ]
    last_step_at: Annotated[
        Time | None,
        described("Time of the last step; `null` before the first.", "2026-03-14T12:03:33.100000Z"),
    ]
    created_at: Annotated[Time, described("Time of creation.", "2026-03-14T12:00:00.200000Z")]
    updated_at: Annotated[Time, described("Time of the last change.", "2026-03-14T12:03:33.100000Z")]
    finished_at: Annotated[Time | None, described("Time of its end.", None)]


class BulkOperationWithLanes(BulkOperation):
    """A bulk operation with its lanes."""

    lanes: Annotated[list[BulkLane], described("Progress for each subscription.")]


class BulkOperationStarted(BulkOperationWithLanes):
    """The result of starting a bulk operation."""

    created: Annotated[
        bool,
        described("Whether this call started it. `false`: an identical operation was already open.", True),
    ]


class BulkOperationList(Page[BulkOperation]):
    """A page of bulk operations."""


class BulkCount(Answer):
    """The result of a dry run."""

    kind: Annotated[Kind, described("The requested kind.", "requeue")]
    rate_per_second: Rate
    matched: Annotated[
        Count,
        described("Dead letters, events or deliveries for which the operation would start sagas.", 12000),
    ]
    subscriptions: Annotated[Count, described("Number of subscriptions among them.", 1)]
    seconds: Annotated[float, described("Minimum time to start all of them.", 600.0)]
    dry_run: Annotated[bool, always(True), described("Always `true`.", True)]
