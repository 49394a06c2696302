"""Bulk operations, asked of the admin function directly: the same use-cases as the routes."""

from typing import Any, Literal, assert_never

from pydantic import Field

from hooksaga.api.answers.bulk_operations import BulkOperation
from hooksaga.api.query_parameters import MAX_LIMIT
from hooksaga.api.routes.bulk_operations import count_answer, operation_answer, started_answer
from hooksaga.aws.function import Function
from hooksaga.core.bulk import BulkStatus
from hooksaga.core.messages import Id
from hooksaga.core.models import StrictModel, TenantId
from hooksaga.core.requeue_models import NewBulkOperation, Rate
from hooksaga.operations import bulk_operations
from hooksaga.operations.bulk_operations import BulkCaller

MOVES = {
    "pause_bulk_operation": BulkStatus.PAUSED,
    "resume_bulk_operation": BulkStatus.RUNNING,
    "stop_bulk_operation": BulkStatus.STOPPED,
}


class StartBulkOperation(NewBulkOperation):
    """`requested_by` is who asks, for the record; `tenant_id` keeps it to that tenant's rows."""

    action: Literal["start_bulk_operation"]
    requested_by: str = Field(default="admin function", pattern=r"^[ -~]{1,100}$")
    tenant_id: TenantId | None = None


class ListBulkOperations(StrictModel):
    """Newest first; `before_id` is the last id of the page before."""

    action: Literal["list_bulk_operations"]
    status: Literal["Running", "Paused", "Stopped", "Completed"] | None = None
    before_id: Id | None = None
    limit: int = Field(default=50, ge=1, le=MAX_LIMIT)


class ShowBulkOperation(StrictModel):
    action: Literal["show_bulk_operation"]
    id: Id


class MoveBulkOperation(StrictModel):
    action: Literal["pause_bulk_operation", "resume_bulk_operation", "stop_bulk_operation"]
    id: Id


class PaceBulkOperation(StrictModel):
    action: Literal["pace_bulk_operation"]
    id: Id
    rate_per_second: Rate


BulkAction = (
    StartBulkOperation | ListBulkOperations | ShowBulkOperation | MoveBulkOperation | PaceBulkOperation
)


async def run_bulk_action(function: Function, action: BulkAction) -> dict[str, Any]:
    """The action's answer. Raises as the stage does."""
    match action:
        case StartBulkOperation():
            return await _start(function, action)
        case ListBulkOperations():
            return await _list(function, action)
        case ShowBulkOperation():
            operation = await function.session.run(
                lambda connection: bulk_operations.show_bulk_operation(connection, action.id, tenant_id=None)
            )
        case MoveBulkOperation():
            operation = await function.session.run(
                lambda connection: bulk_operations.move_bulk_operation(
                    connection, action.id, MOVES[action.action], tenant_id=None
                )
            )
        case PaceBulkOperation():
            operation = await function.session.run(
                lambda connection: bulk_operations.pace_bulk_operation(
                    connection, action.id, action.rate_per_second, tenant_id=None
                )
            )
        case _:
            assert_never(action)
    return operation_answer(operation).content()


async def _start(function: Function, action: StartBulkOperation) -> dict[str, Any]:
    caller = BulkCaller(action.tenant_id, action.requested_by)
    if action.dry_run:
        count = await function.session.run(
            lambda connection: bulk_operations.count_bulk_operation(connection, action, caller)
        )
        return count_answer(action, count).content()
    operation, created = await function.session.run(
        lambda connection: bulk_operations.start_bulk_operation(connection, action, caller)
    )
    return started_answer(operation, created=created).content()


async def _list(function: Function, action: ListBulkOperations) -> dict[str, Any]:
    status = None if action.status is None else BulkStatus(action.status)
    rows = await function.session.run(
        lambda connection: bulk_operations.list_bulk_operations(
            connection, tenant_id=None, status=status, before_id=action.before_id, limit=action.limit
        )
    )
    following = rows[-1].id if len(rows) == action.limit else None
    return {"items": [BulkOperation.of(row).content() for row in rows], "next": following}
