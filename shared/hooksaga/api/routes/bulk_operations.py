"""/v1/bulk-operations: many dead letters requeued, or many old events sent to one subscription, at a steady rate."""

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import (
    Caller,
    authorize,
    json_response,
    list_response,
    page_of,
    path_id,
    query_text,
    read_model,
    services_of,
)
from hooksaga.core.bulk import BulkStatus
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.core.models import BulkChange, NewBulkOperation, rfc3339
from hooksaga.operations import bulk_operations
from hooksaga.operations.bulk_operations import BulkCaller, BulkCount, BulkOperation

KEY_WITHOUT_A_NAME = "api key"


async def start(request: Request) -> Response:
    """201 with the operation; 200 with the same one where it has not ended; 200 with counts for a dry run."""
    caller = await _operator(request)
    admin = services_of(request).admin
    wanted = await read_model(request, NewBulkOperation)
    checked_code_filter(caller, wanted.filter.error_code)
    asking = BulkCaller(caller.tenant_id, KEY_WITHOUT_A_NAME, caller.key_id)
    if wanted.dry_run:
        count = await admin.run(
            lambda connection: bulk_operations.count_bulk_operation(connection, wanted, asking)
        )
        return json_response(count_content(wanted, count))
    operation, created = await admin.run(
        lambda connection: bulk_operations.start_bulk_operation(connection, wanted, asking)
    )
    content = {**operation_content(operation), "created": created}
    return json_response(content, 201 if created else 200)


async def list_all(request: Request) -> Response:
    """Newest first; `status` filters."""
    caller = await _operator(request)
    page = page_of(request, "status")
    status = _status(query_text(request, "status"))
    rows = await services_of(request).admin.run(
        lambda connection: bulk_operations.list_bulk_operations(
            connection,
            tenant_id=caller.tenant_id,
            status=status,
            before_id=page.before_id,
            limit=page.limit,
        )
    )
    return list_response(list_content(rows), page)


async def show(request: Request) -> Response:
    """One operation, with how far it is for each subscription."""
    caller = await _operator(request)
    operation_id = _id(request)
    operation = await services_of(request).admin.run(
        lambda connection: bulk_operations.show_bulk_operation(
            connection, operation_id, tenant_id=caller.tenant_id
        )
    )
    return json_response(operation_content(operation))


async def change(request: Request) -> Response:
    """Another rate, for what is not started yet."""
    caller = await _operator(request)
    operation_id = _id(request)
    wanted = await read_model(request, BulkChange)
    operation = await services_of(request).admin.run(
        lambda connection: bulk_operations.pace_bulk_operation(
            connection, operation_id, wanted.rate_per_second, tenant_id=caller.tenant_id
        )
    )
    return json_response(operation_content(operation))


async def pause(request: Request) -> Response:
    """200, and nothing more is started; again: the same."""
    return await _move(request, BulkStatus.PAUSED)


async def resume(request: Request) -> Response:
    """200, and it goes on where it was."""
    return await _move(request, BulkStatus.RUNNING)


async def stop(request: Request) -> Response:
    """200, and it has ended: what was not started never is by it."""
    return await _move(request, BulkStatus.STOPPED)


async def _move(request: Request, status: BulkStatus) -> Response:
    caller = await _operator(request)
    operation_id = _id(request)
    operation = await services_of(request).admin.run(
        lambda connection: bulk_operations.move_bulk_operation(
            connection, operation_id, status, tenant_id=caller.tenant_id
        )
    )
    return json_response(operation_content(operation))


async def _operator(request: Request) -> Caller:
    return await authorize(request, "admin")


def _id(request: Request) -> int:
    return path_id(request, NotFound("bulk_operation_not_found", "there is no such bulk operation"))


def _status(text: str | None) -> BulkStatus | None:
    if text is None:
        return None
    try:
        return BulkStatus(text)
    except ValueError:
        raise InvalidInput(
            "invalid_parameter", f"status is one of {', '.join(BulkStatus)}", field="status", status=422
        ) from None


def operation_content(operation: BulkOperation) -> dict[str, Any]:
    """One operation as the API shows it alone."""
    return {**_summary(operation), "lanes": [asdict(lane) for lane in operation.lanes]}


def _summary(operation: BulkOperation) -> dict[str, Any]:
    times = ("last_step_at", "created_at", "updated_at", "finished_at")
    shown = {**asdict(operation), **{name: rfc3339(getattr(operation, name)) for name in times}}
    del shown["lanes"]
    return shown


def list_content(operations: list[BulkOperation]) -> list[dict[str, Any]]:
    """Operations as a list shows them, without their lanes."""
    return [_summary(operation) for operation in operations]


def count_content(wanted: NewBulkOperation, count: BulkCount) -> dict[str, Any]:
    """The answer to a dry run. seconds: how long it takes at least to start them all."""
    return {
        "kind": wanted.kind,
        "rate_per_second": wanted.rate_per_second,
        **asdict(count),
        "seconds": round(count.matched / wanted.rate_per_second, 3),
        "dry_run": True,
    }


ROUTES = [
    Route("/v1/bulk-operations", start, methods=["POST"]),
    Route("/v1/bulk-operations", list_all, methods=["GET"]),
    Route("/v1/bulk-operations/{id}", show, methods=["GET"]),
    Route("/v1/bulk-operations/{id}", change, methods=["PATCH"]),
    Route("/v1/bulk-operations/{id}/pause", pause, methods=["POST"]),
    Route("/v1/bulk-operations/{id}/resume", resume, methods=["POST"]),
    Route("/v1/bulk-operations/{id}/stop", stop, methods=["POST"]),
]
