"""Routing: SQS `routing`, and a tick every minute that finds what a lost message left in the outbox (spec §5)."""

from collections.abc import Sequence
from typing import Any

from shared.adapters.database import Role
from shared.core.errors import DatabaseUnavailable
from shared.core.messages import RoutingMessage
from shared.runtime.dispatch import tell_orchestrator_of_sagas
from shared.runtime.function import Event, Function, Invocation
from shared.runtime.sqs_events import failures, is_sqs_batch, read_messages
from shared.runtime.telemetry import log_routed, logger
from shared.stages.route_events import route_events

function = Function(Role.ROUTER)


def handler(event: Event, context: Any) -> Any:
    """SQS batch in, `batchItemFailures` out; any other event is a tick."""
    return function.run(route, event, context)


async def route(function: Function, invocation: Invocation) -> Any:
    if not is_sqs_batch(invocation.event):
        count, _ = await _route_all(function, invocation, None)
        return {"routed": count}
    messages = read_messages(invocation.event, RoutingMessage)
    event_ids = [message.body.event_id for message in messages]
    try:
        _, in_time = await _route_all(function, invocation, event_ids)
    except DatabaseUnavailable as error:
        logger.warning("database unavailable", extra={"messages": len(messages), "error": str(error)})
        return failures(messages)
    return failures([] if in_time else messages)


async def _route_all(
    function: Function, invocation: Invocation, event_ids: Sequence[int] | None
) -> tuple[int, bool]:
    """How many events were routed, and whether none was left when the time was over."""
    count = 0
    while invocation.seconds_left() > 0:
        routed = await function.session.run(lambda connection: route_events(connection, event_ids=event_ids))
        if not routed.event_ids:
            return count, True
        log_routed(routed)
        await tell_orchestrator_of_sagas(function.queues, routed.saga_ids)
        count += len(routed.event_ids)
    return count, False
