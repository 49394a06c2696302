"""Orchestration: SQS `orchestration`, and a tick every minute that finds due work by SQL alone."""

from collections.abc import Awaitable, Callable, Set
from functools import partial
from typing import Any

from hooksaga.adapters.database import Connection, Role
from hooksaga.aws.dispatch import dispatch_jobs, send_move_messages
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.sqs_events import Message, failures, note_idle, read_messages
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import Conflict, DatabaseUnavailable, NotFound, RowRefused
from hooksaga.core.messages import OrchestrationMessage
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import orchestrate, undispatched
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.telemetry import note_moves, note_oldest_due, note_refused

Unit = Callable[[Connection], Awaitable[list[SagaMoved]]]

function = Function(Role.ORCHESTRATOR)


def handler(event: Event, context: Any) -> Any:
    """Handle an SQS batch with `batchItemFailures`, or a tick: returns `{"moved": n, "dispatched": n}`."""
    trigger = expect(event, Trigger.SQS, Trigger.TICK)
    return function.run(sweep if trigger is Trigger.TICK else take, event, context)


async def take(function: Function, invocation: Invocation) -> Any:
    messages = read_messages(invocation.event, OrchestrationMessage)
    try:
        await _take(function, messages)
    except DatabaseUnavailable as error:
        logger.warning("database unavailable", extra={"messages": len(messages), "error": str(error)})
        return failures(messages)
    return failures([])


async def _take(function: Function, messages: list[Message[OrchestrationMessage]]) -> None:
    policy = function.settings.retry_policy
    bodies = [message.body for message in messages]
    job_ids = [body.job_id for body in bodies if body.job_id is not None]
    saga_ids = [body.saga_id for body in bodies if body.saga_id is not None]
    moves: list[SagaMoved] = []
    refusals: list[RowRefused] = []
    if job_ids:
        moves += await _move(
            function, partial(orchestrate.apply_results, defaults=policy, job_ids=job_ids), refusals
        )
    if saga_ids:
        moves += await _move(
            function, partial(orchestrate.start_attempts_of, defaults=policy, saga_ids=saga_ids), refusals
        )
    jobs, sagas = {move.job_id for move in moves}, {move.saga_id for move in moves}
    note_idle(one for one in messages if not (one.body.cancel_saga_id or _has_moved(one.body, jobs, sagas)))
    for message in messages:
        if message.body.cancel_saga_id is not None:
            await _cancel(function, message.body.cancel_saga_id, message.correlation_id)


def _has_moved(body: OrchestrationMessage, jobs: Set[int | None], sagas: Set[int]) -> bool:
    return body.saga_id in sagas if body.job_id is None else body.job_id in jobs


async def _cancel(function: Function, saga_id: int, correlation_id: str | None) -> None:
    policy = function.settings.retry_policy
    try:
        move = await function.session.run(
            lambda connection: orchestrate.cancel_saga(connection, policy, saga_id)
        )
    except (Conflict, NotFound) as refused:
        keys = {"saga_id": saga_id, "correlation_id": correlation_id, "reason": str(refused)}
        logger.info("saga not canceled", extra=keys)
        return
    await _send_messages(function, [move])


async def sweep(function: Function, invocation: Invocation) -> dict[str, int]:
    """Process all due work, with or without a message.

    Raises RowRefused at the end if the database rejected a row, so that the tick fails and the error alarm fires.
    """
    policy, counts = function.settings.retry_policy, {"moved": 0, "dispatched": 0}
    refusals: list[RowRefused] = []
    note_oldest_due(await function.session.run(orchestrate.oldest_due_seconds))
    for stage in (orchestrate.apply_results, orchestrate.start_first_attempts, orchestrate.start_due_retries):
        while invocation.seconds_left() > 0:
            moved = len(await _move(function, partial(stage, defaults=policy), refusals))
            counts["moved"] += moved
            if not moved:
                break
    while invocation.seconds_left() > 0:
        jobs = await function.session.run(
            partial(
                undispatched.find_undispatched_jobs, redispatch_seconds=function.settings.redispatch_seconds
            )
        )
        sent = await dispatch_jobs(function.queues, function.session, jobs)
        counts["dispatched"] += sent
        if (
            sent < len(jobs) or len(jobs) < orchestrate.BATCH
        ):  # a queue that rejects messages is not tried again
            break
    if refusals:
        raise refusals[0]
    return counts


async def _move(function: Function, unit: Unit, refusals: list[RowRefused]) -> list[SagaMoved]:
    """Return the moves, after sending their messages, even if the database rejected some rows."""
    try:
        moves = await function.session.run(unit)
    except RowRefused as refused:
        reported = {row for before in refusals for row in before.rows}
        note_refused(row for row in refused.rows if row not in reported)
        refusals.append(refused)
        moves = list(refused.done)
    await _send_messages(function, moves)
    return moves


async def _send_messages(function: Function, moves: list[SagaMoved]) -> None:
    note_moves(moves)
    await send_move_messages(function.queues, function.session, moves)
