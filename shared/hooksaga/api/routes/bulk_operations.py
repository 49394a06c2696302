"""/v1/bulk-operations: requeue many dead letters, resend many deliveries, or send many old events to one
subscription, at a steady rate."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import bulk_operations as answers
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import authorize, path_id, read_model, services_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import ReadPage, check_list_parameters
from hooksaga.api.query_parameters import id_before, next_cursor, query_choice, query_tenant
from hooksaga.api.services import Services
from hooksaga.core.bulk import BulkStatus
from hooksaga.core.errors import NotFound
from hooksaga.core.requeue_models import BulkChange, NewBulkOperation
from hooksaga.operations import bulk_operations
from hooksaga.operations.bulk_operations import BulkCount, BulkOperation


async def start(request: Request) -> Response:
    """Start an operation: 201 with it; 200 with an equal one that has not ended; 200 with counts for a dry run."""
    caller = await authorize(request, "admin")
    admin = services_of(request).admin
    wanted = await read_model(request, NewBulkOperation)
    checked_code_filter(caller, wanted.filter.error_code)
    asking = caller.requester
    if wanted.dry_run:
        count = await admin.run(bulk_operations.count_bulk_operation, wanted, asking)
        return answer_response(_counted(wanted, count))
    operation, created = await admin.run(bulk_operations.start_bulk_operation, wanted, asking)
    return answer_response(_started(operation, created=created), 201 if created else 200)


async def list_all(request: Request) -> Response:
    """List operations, newest first, by any of the filters."""
    caller = await authorize(request, "admin")
    check_list_parameters(request, FORMAT, "tenant_id", "status")
    tenant_id = query_tenant(request, caller.tenant_id)
    status = query_choice(request, "status", BulkStatus)
    read = bulk_operation_pages(services_of(request), tenant_id=tenant_id, status=status)
    return await list_response(request, caller, read, item=answers.BulkOperation, name="bulk-operations")


def bulk_operation_pages(services: Services, *, tenant_id: str | None, status: BulkStatus | None) -> ReadPage:
    """Return the reader of the pages of this list."""

    async def read(cursor: str | None, limit: int) -> answers.BulkOperationList:
        before_id = id_before(cursor)
        rows = await services.admin.run(
            bulk_operations.list_bulk_operations,
            tenant_id=tenant_id,
            status=status,
            before_id=before_id,
            limit=limit,
        )
        items = [answers.BulkOperation.of(row) for row in rows]
        return answers.BulkOperationList(items, next_cursor(rows, limit))

    return read


async def show(request: Request) -> Response:
    """Show one operation, with its progress for each subscription."""
    caller = await authorize(request, "admin")
    operation_id = _id(request)
    operation = await services_of(request).admin.run(
        bulk_operations.show_bulk_operation, operation_id, tenant_id=caller.tenant_id
    )
    return answer_response(_shown(operation))


async def change(request: Request) -> Response:
    """Change the rate for sagas that are not started yet."""
    caller = await authorize(request, "admin")
    operation_id = _id(request)
    wanted = await read_model(request, BulkChange)
    operation = await services_of(request).admin.run(
        bulk_operations.pace_bulk_operation, operation_id, wanted.rate_per_second, tenant_id=caller.tenant_id
    )
    return answer_response(_shown(operation))


async def pause(request: Request) -> Response:
    """Pause an operation: 200, and no more sagas are started. A repeat gives the same response."""
    return await _move(request, BulkStatus.PAUSED)


async def resume(request: Request) -> Response:
    """Resume an operation: 200, and it continues where it was."""
    return await _move(request, BulkStatus.RUNNING)


async def stop(request: Request) -> Response:
    """Stop an operation: 200, and it has ended. It starts no more sagas."""
    return await _move(request, BulkStatus.STOPPED)


async def _move(request: Request, status: BulkStatus) -> Response:
    caller = await authorize(request, "admin")
    operation_id = _id(request)
    operation = await services_of(request).admin.run(
        bulk_operations.move_bulk_operation, operation_id, status, tenant_id=caller.tenant_id
    )
    return answer_response(_shown(operation))


def _id(request: Request) -> int:
    return path_id(request, NotFound("bulk_operation_not_found", "there is no such bulk operation"))


def _shown(operation: BulkOperation) -> answers.BulkOperationWithLanes:
    return answers.BulkOperationWithLanes.of(operation, lanes=_lanes(operation))


def _started(operation: BulkOperation, *, created: bool) -> answers.BulkOperationStarted:
    return answers.BulkOperationStarted.of(operation, lanes=_lanes(operation), created=created)


def _lanes(operation: BulkOperation) -> list[answers.BulkLane]:
    return [answers.BulkLane.of(lane) for lane in operation.lanes]


def _counted(wanted: NewBulkOperation, count: BulkCount) -> answers.BulkCount:
    """Return the result of a dry run. seconds: the minimum time to start them all."""
    return answers.BulkCount.of(
        count,
        kind=wanted.kind,
        rate_per_second=wanted.rate_per_second,
        seconds=round(count.matched / wanted.rate_per_second, 3),
        dry_run=True,
    )


ROUTES = [
    Route("/v1/bulk-operations", start, methods=["POST"]),
    Route("/v1/bulk-operations", list_all, methods=["GET"]),
    Route("/v1/bulk-operations/{id}", show, methods=["GET"]),
    Route("/v1/bulk-operations/{id}", change, methods=["PATCH"]),
    Route("/v1/bulk-operations/{id}/pause", pause, methods=["POST"]),
    Route("/v1/bulk-operations/{id}/resume", resume, methods=["POST"]),
    Route("/v1/bulk-operations/{id}/stop", stop, methods=["POST"]),
]
