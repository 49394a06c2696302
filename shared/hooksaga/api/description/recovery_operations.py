"""Operations on dead letters, sagas and bulk operations."""

from hooksaga.api.answers import bulk_operations, dead_letters, sagas
from hooksaga.api.description.operation import Given, Operation
from hooksaga.api.routes import operations
from hooksaga.core.requeue_models import BulkChange, NewBulkOperation, RequeueFilter

OPERATIONS = (
    Operation(
        "GET /v1/dead-letters",
        "List dead letters, newest first",
        ("admin",),
        {"200": Given(dead_letters.DeadLetterList)},
        words="With `requeued`, one call scans at most 10,000 dead letters: a page may be short or empty and still "
        "have a `next`.",
        parameters=(*operations.FILTERS, "limit", "cursor", "format"),
        export=True,
    ),
    Operation(
        "POST /v1/dead-letters/requeue",
        "Requeue all dead letters that match",
        ("admin",),
        {"200": Given(dead_letters.RequeuedMatches)},
        words="Oldest first. All given fields must match; `dry_run` only counts. Dead letters with "
        "`canceled` or `discarded` are excluded, unless `error_code` names it.",
        body=RequeueFilter,
        body_is_optional=True,
    ),
    Operation(
        "GET /v1/dead-letters/{id}",
        "Show a dead letter with its payload",
        ("admin",),
        {"200": Given(dead_letters.DeadLetterWithPayload)},
    ),
    Operation(
        "POST /v1/dead-letters/{id}/requeue",
        "Requeue one dead letter as a new saga",
        ("admin",),
        {
            "201": Given(dead_letters.Requeued, "The new saga."),
            "200": Given(dead_letters.Requeued, "The saga of an earlier requeue."),
        },
        words="A repeated call returns the same saga and sends nothing again.",
        problems="409",
    ),
    Operation(
        "POST /v1/sagas/{id}/cancel",
        "Cancel a waiting saga",
        ("admin",),
        {
            "202": Given(dead_letters.CanceledSaga, "The cancel is requested; the state is the current one."),
            "200": Given(dead_letters.CanceledSaga, "It was canceled before."),
        },
        words="The delivery becomes a dead letter with `canceled`. A saga with an active attempt is rejected.",
        problems="409",
    ),
    Operation(
        "POST /v1/sagas/{id}/resend",
        "Resend a delivery that has ended",
        ("admin",),
        {
            "201": Given(sagas.ResentSaga, "The new saga."),
            "200": Given(sagas.ResentSaga, "The saga of an earlier resend that has not ended."),
        },
        words="Starts a new saga for the same event and subscription, whatever the result of the first one was. The "
        "endpoint gets the same `webhook-id`, so it must not drop it as a duplicate. A dead letter of the saga counts "
        "as requeued. A repeated call returns the same saga until that one has ended.",
        problems="409",
    ),
    Operation(
        "POST /v1/sagas/{id}/retry-now",
        "Retry a waiting saga now",
        ("admin",),
        {"202": Given(sagas.RetriedSaga)},
        words="Its next attempt starts at once, within the limits of the subscription. A wait for `Retry-After` ends, "
        "and an open circuit breaker probes now. A paused subscription stays paused.",
        problems="409",
    ),
    Operation(
        "POST /v1/subscriptions/{id}/retry-now",
        "Retry all deliveries of a subscription that wait for a retry",
        ("admin",),
        {"202": Given(sagas.RetriedSubscription)},
        words="As for one saga.",
        problems="409",
    ),
    Operation(
        "POST /v1/bulk-operations",
        "Start a requeue, a resend or a backfill at a given rate, or count its matches",
        ("admin",),
        {
            "201": Given(bulk_operations.BulkOperationStarted, "The operation, which has started."),
            "200": Given(
                "BulkOperationOrCount",
                "The identical operation that is still open, or the counts of a dry run.",
            ),
        },
        words="Each match gets one new saga, at `rate_per_second`. A requeue and a resend exclude deliveries "
        "with `canceled` or `discarded`, unless `error_code` names it. A resend sends each event once: its newest "
        "delivery to the subscription, if that has ended. An identical call while the operation is "
        "open returns the same operation. `dry_run` only counts.",
        problems="404 409",
        body=NewBulkOperation,
    ),
    Operation(
        "GET /v1/bulk-operations",
        "List bulk operations, newest first",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationList)},
        parameters=("tenant_id", "bulk_status", "limit", "cursor", "format"),
        export=True,
    ),
    Operation(
        "GET /v1/bulk-operations/{id}",
        "Show a bulk operation and its progress per subscription",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="`lanes` are its subscriptions, at most 100, those with the most remaining work first.",
    ),
    Operation(
        "PATCH /v1/bulk-operations/{id}",
        "Change the rate of a bulk operation",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="Applies to sagas that are not started yet.",
        problems="409",
        body=BulkChange,
    ),
    Operation(
        "POST /v1/bulk-operations/{id}/pause",
        "Pause a bulk operation",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="Started sagas continue: those of the next few seconds, on AWS of up to 75 seconds.",
        problems="409",
    ),
    Operation(
        "POST /v1/bulk-operations/{id}/resume",
        "Resume a bulk operation",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        problems="409",
    ),
    Operation(
        "POST /v1/bulk-operations/{id}/stop",
        "Stop a bulk operation for good",
        ("admin",),
        {"200": Given(bulk_operations.BulkOperationWithLanes)},
        words="Started sagas continue.",
        problems="409",
    ),
)
