"""Operations that repair deliveries: dead letters, sagas and bulk operations."""

from hooksaga.api.answers import bulk_operations, dead_letters
from hooksaga.api.description.operation import BODY, Given, Operation
from hooksaga.core.requeue_models import BulkChange, NewBulkOperation, RequeueFilter

_DEAD_LETTER_FILTERS = ("subscription_id", "event_type", "error_code", "failed_after", "failed_before")

OPERATIONS = (
    Operation(
        "get",
        "/v1/dead-letters",
        "List dead letters, newest first",
        ("admin",),
        {"200": Given(dead_letters.DeadLetterList)},
        problems="422",
        parameters=(*_DEAD_LETTER_FILTERS, "limit", "cursor"),
    ),
    Operation(
        "post",
        "/v1/dead-letters/requeue",
        "Requeue all dead letters that match",
        ("admin",),
        {"200": Given(dead_letters.RequeuedMatches)},
        words="The oldest first. Every field that is given must match; `dry_run` only counts. What was "
        "`canceled` is left out, unless `error_code` names it.",
        problems=BODY,
        body=RequeueFilter,
        body_is_optional=True,
    ),
    Operation(
        "get",
        "/v1/dead-letters/{id}",
        "Show a dead letter with its payload",
        ("admin",),
        {"200": Given(dead_letters.DeadLetterWithPayload)},
        problems="404",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/dead-letters/{id}/requeue",
        "Requeue one dead letter as a new saga",
        ("admin",),
        {
            "201": Given(dead_letters.Requeued, "The new saga."),
            "200": Given(dead_letters.Requeued, "It was requeued before: the same saga."),
        },
        words="Repeating the call answers the same saga: nothing is sent twice for it.",
        problems="404 409",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/sagas/{id}/cancel",
        "End a saga that waits",
        ("admin",),
        {
            "202": Given(dead_letters.CanceledSaga, "It was asked to end; the state is that of this moment."),
            "200": Given(dead_letters.CanceledSaga, "It was canceled before."),
        },
        words="The delivery ends as a dead letter with `canceled`. One that is being attempted is refused.",
        problems="404 409",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/bulk-operations",
        "Start requeueing, or a backfill, at a steady rate; or count what it would do",
        ("admin",),
        {
            "201": Given(bulk_operations.BulkOperationStarted, "The operation, which has begun."),
            "200": Given(
                "BulkOperationOrCount",
                "The same operation as before, as it has not ended; or the counts of a dry run.",
            ),
        },
        words="Each match gets one new saga, `rate_per_second` of them, until all have one; a requeue leaves "
        "out what was `canceled`, unless `error_code` names it. An equal call while the operation has "
        "not ended answers the same operation. `dry_run` only counts.",
        problems=f"{BODY} 404 409",
        body=NewBulkOperation,
    ),
    Operation(
        "get",
        "/v1/bulk-operations",
        "List bulk operations, newest first",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationList)},
        problems="422",
        parameters=("bulk_status", "limit", "cursor"),
    ),
    Operation(
        "get",
        "/v1/bulk-operations/{id}",
        "Show a bulk operation, and how far it is with each subscription",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="`lanes` are its subscriptions, at most 100, those with most to do first.",
        problems="404",
        parameters=("id",),
    ),
    Operation(
        "patch",
        "/v1/bulk-operations/{id}",
        "Go on at another rate",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="It holds for what is not started yet.",
        problems=f"{BODY} 404 409",
        body=BulkChange,
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/bulk-operations/{id}/pause",
        "Start nothing more for now",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="What is started goes on: a few seconds of its rate, on AWS up to 75.",
        problems="404 409",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/bulk-operations/{id}/resume",
        "Go on where it was paused",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        problems="404 409",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/bulk-operations/{id}/stop",
        "End it; what was not started never is by it",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="What is started goes on.",
        problems="404 409",
        parameters=("id",),
    ),
)
