"""SQS mode: a tick every minute continues bulk operations and starts the sagas due before the next tick."""

from hooksaga.aws.dispatch import wake_orchestrator_for_step
from hooksaga.aws.function import Function, Invocation
from hooksaga.core.bulk import BulkStatus
from hooksaga.operations.bulk_steps import BulkStep, step_bulk_operation, traces_of_sagas
from hooksaga.operations.telemetry import note_bulk_step
from hooksaga.stages.telemetry import note_refused

HORIZON_SECONDS = 75.0
"""Longer than the minute between ticks, so that a late tick leaves no gap."""


async def step_bulk_operations(function: Function, invocation: Invocation) -> dict[str, int]:
    """Step every operation until its horizon is full: `{"started": sagas, "completed": operations}`.

    The messages of a step are sent after its commit, each to arrive when its saga is due. The orchestrator's sweep
    finds the sagas of lost messages by SQL.
    """
    counts, passed_by = {"started": 0, "completed": 0}, frozenset[int]()
    while invocation.seconds_left() > 0:
        step = await function.session.run(
            step_bulk_operation, horizon_seconds=HORIZON_SECONDS, passed_by=passed_by
        )
        note_bulk_step(step)
        note_refused(step.refused)
        if step.operation_id is None:
            break
        if step.saga_ids:
            await _tell(function, step)
        counts["started"] += len(step.saga_ids)
        counts["completed"] += step.status == BulkStatus.COMPLETED
        if not step.saga_ids:
            passed_by |= {step.operation_id}
    return counts


async def _tell(function: Function, step: BulkStep) -> None:
    traces = await function.session.run(traces_of_sagas, step.saga_ids)
    await wake_orchestrator_for_step(function.queues, step, traces)
