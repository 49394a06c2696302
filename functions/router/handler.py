"""Routing: SQS `routing`, and a tick every minute that routes events whose message was lost."""

from collections.abc import Sequence
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.aws.dispatch import wake_orchestrator_for_subscriptions
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.sqs_events import failures, note_idle, read_messages
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow
from hooksaga.core.messages import RoutingMessage
from hooksaga.runtime.telemetry import logger
from hooksaga.stages.route_events import outbox_age_seconds, route_events
from hooksaga.stages.telemetry import note_outbox_age, note_refused, note_routed

function = Function(Role.ROUTER)


def handler(event: Event, context: Any) -> Any:
    """Handle an SQS batch with `batchItemFailures`, or a tick: returns `{"routed": n}`."""
    trigger = expect(event, Trigger.SQS, Trigger.TICK)
    return function.run(sweep if trigger is Trigger.TICK else route, event, context)


async def sweep(function: Function, invocation: Invocation) -> dict[str, int]:
    """Route all events in the outbox."""
    note_outbox_age(await function.session.run(outbox_age_seconds))
    routed, _ = await _route_all(function, invocation, None)
    return {"routed": len(routed)}


async def route(function: Function, invocation: Invocation) -> Any:
    messages = read_messages(invocation.event, RoutingMessage)
    event_ids = [message.body.event_id for message in messages]
    try:
        routed, in_time = await _route_all(function, invocation, event_ids)
    except DatabaseUnavailable as error:
        logger.warning("database unavailable", extra={"messages": len(messages), "error": str(error)})
        return failures(messages)
    if not in_time:
        return failures(messages)
    note_idle(message for message in messages if message.body.event_id not in routed)
    return failures([])


async def _route_all(
    function: Function, invocation: Invocation, event_ids: Sequence[int] | None
) -> tuple[set[int], bool]:
    """Return the routed events, and whether the outbox was empty before the time limit."""
    done: set[int] = set()
    reported: set[RefusedRow] = set()
    while invocation.seconds_left() > 0:
        refused: list[RefusedRow] = []
        routed = await function.session.run(route_events, event_ids=event_ids, on_refusal=refused.append)
        note_refused(row for row in refused if row not in reported)
        reported.update(refused)
        if not routed.events:
            return done, True
        note_routed(routed)
        await wake_orchestrator_for_subscriptions(function.queues, routed.traces)
        done.update(routed.event_ids)
    return done, False
