"""Orchestration: SQS `orchestration`, and a tick every minute that finds by SQL alone what is due.

A message names a subscription that may have something to start, a job with a result, or a saga to cancel. Results are
applied first, because they free room; then attempts are started, of the named subscriptions and of those whose results
have freed room, until none of them has both room and something due. Room that time opens has one delayed message.
"""

from collections.abc import Sequence
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.orchestration import Turn
from hooksaga.aws.sqs_events import Message, failures, note_idle, read_messages
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import Conflict, DatabaseUnavailable, NotFound
from hooksaga.core.messages import OrchestrationMessage
from hooksaga.runtime.telemetry import logger
from hooksaga.stages.telemetry import note_oldest_due
from hooksaga.stages.wakes import oldest_due_seconds

Messages = Sequence[Message[OrchestrationMessage]]

function = Function(Role.ORCHESTRATOR)


def handler(event: Event, context: Any) -> Any:
    """Handle an SQS batch with `batchItemFailures`, or a tick: returns `{"moved": n, "dispatched": n}`."""
    trigger = expect(event, Trigger.SQS, Trigger.TICK)
    return function.run(sweep if trigger is Trigger.TICK else take, event, context)


async def take(function: Function, invocation: Invocation) -> Any:
    """Do the work that the messages name. Results that somebody else keeps from being applied come back."""
    messages = read_messages(invocation.event, OrchestrationMessage)
    turn = Turn(function, invocation)
    try:
        left = await _take(turn, messages)
    except DatabaseUnavailable as error:
        logger.warning("database unavailable", extra={"messages": len(messages), "error": str(error)})
        return failures(messages)
    finally:
        await turn.send_wakes()
    return failures(message for message in messages if message.body.job_id in left)


async def _take(turn: Turn, messages: Messages) -> set[int]:
    """The ids of the jobs whose results are left."""
    bodies = [message.body for message in messages]
    applied, left = await turn.apply({body.job_id for body in bodies if body.job_id is not None})
    due = {body.subscription_id for body in bodies if body.subscription_id is not None}
    due |= {move.subscription_id for move in applied if move.has_due}
    for message in messages:
        if message.body.cancel_saga_id is not None:
            due |= await _cancel(turn, message.body.cancel_saga_id, message.correlation_id)
    moved = await turn.start(due)
    jobs = {move.job_id for move in applied} | left
    note_idle(
        message
        for message in messages
        if message.body.cancel_saga_id is None
        and message.body.job_id not in jobs
        and message.body.subscription_id not in moved
    )
    return left


async def _cancel(turn: Turn, saga_id: int, correlation_id: str | None) -> set[int]:
    """The subscription of the saga, if it was canceled: the one after it may have waited for it."""
    try:
        return {(await turn.cancel(saga_id)).subscription_id}
    except (Conflict, NotFound) as refused:
        keys = {"saga_id": saga_id, "correlation_id": correlation_id, "reason": str(refused)}
        logger.info("saga not canceled", extra=keys)
        return set()


async def sweep(function: Function, invocation: Invocation) -> dict[str, int]:
    """Process all due work, with or without a message.

    Raises RowRefused at the end if the database rejected a row, so that the tick fails and the error alarm fires.
    """
    turn = Turn(function, invocation)
    try:
        note_oldest_due(await function.session.run(oldest_due_seconds))
        await turn.apply_all()
        await turn.start_woken()
        await turn.start_waiting()
        dispatched = await turn.redispatch()
    finally:
        await turn.send_wakes()
    if turn.refusals:
        raise turn.refusals[0]
    return {"moved": turn.moved, "dispatched": dispatched}
