"""Answers about bulk operations: one, a list of them, and what one would do."""

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
    one_of,
    said,
)
from hooksaga.core.bulk import BulkKind, BulkStatus

Kind = Annotated[
    str,
    one_of(BulkKind),
    said(
        "`requeue`: dead letters get new sagas. `backfill`: events that a subscription never got get their first.",
        "requeue",
    ),
]
Rate = Annotated[float, said("Sagas started per second, of all subscriptions together.", 20.0)]
Matched = Annotated[Count, said("Dead letters, or events, that the filter meant when it began.", 12000)]
Done = Annotated[Count, said("Sagas that were started.", 4260)]
Skipped = Annotated[
    Count,
    said("Requeued or routed by somebody else, or left since the subscription takes nothing any more.", 2),
]


class BulkLane(Answer):
    """How far an operation is with one subscription."""

    subscription_id: Annotated[SubscriptionId, said("The subscription.", 8)]
    matched: Matched
    done: Done
    skipped: Skipped
    finished: Annotated[bool, said("Whether nothing is left to do for this subscription.", False)]


class BulkOperation(Answer):
    """Many dead letters that are requeued, or old events that are sent, at a steady rate."""

    id: Annotated[RowId, said("The number that names it.", 3)]
    kind: Kind
    status: Annotated[str, one_of(BulkStatus), said("Where it stands.", "Running")]
    tenant_id: Annotated[Name | None, said("Whose rows; `null`: all tenants'.", None)]
    filter: Annotated[
        dict[str, Any],
        said("What it is about. Every field that is given must match.", {"error_code": "http_503"}),
    ]
    rate_per_second: Rate
    reason: Annotated[str, said("Why, for the record.", "the receiver is back")]
    created_by: Annotated[
        str, said("The name of the key that started it, or who asked the admin function.", "on-call")
    ]
    created_by_key_id: Annotated[
        RowId | None, said("The key that started it; `null` when it was not the API.", 2)
    ]
    matched: Matched
    done: Done
    skipped: Skipped
    last_step_at: Annotated[
        Time | None,
        said("When it last went on; `null` before it first did.", "2026-03-14T12:03:33.100000Z"),
    ]
    created_at: Annotated[Time, said("When it was stored.", "2026-03-14T12:00:00.200000Z")]
    updated_at: Annotated[Time, said("When it was last changed.", "2026-03-14T12:03:33.100000Z")]
    finished_at: Annotated[Time | None, said("When it ended.", None)]


class BulkOperationWithLanes(BulkOperation):
    """A bulk operation as it is shown alone."""

    lanes: Annotated[list[BulkLane], said("How far it is with each subscription.")]


class BulkOperationStarted(BulkOperationWithLanes):
    """A bulk operation that was asked for."""

    created: Annotated[bool, said("Whether this call started it; if not, an equal one did before.", True)]


class BulkOperationList(Page[BulkOperation]):
    """A page of bulk operations."""


class BulkCount(Answer):
    """What a bulk operation would do."""

    kind: Annotated[Kind, said("What was asked for.", "requeue")]
    rate_per_second: Rate
    matched: Annotated[
        Count, said("Dead letters, or events, that an operation would start sagas for.", 12000)
    ]
    subscriptions: Annotated[Count, said("Of so many subscriptions.", 1)]
    seconds: Annotated[float, said("How long it takes at least to start them all.", 600.0)]
    dry_run: Annotated[bool, always(True), said("Always `true`.", True)]
