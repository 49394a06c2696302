"""Health monitor: a tick every minute counts attempts, warns, disables endpoints, and sends operational events. It also
measures how many subscriptions wait."""

from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.aws.dispatch import wake_router
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.operations.observe import read_flow_gauges
from hooksaga.operations.telemetry import note_flow_gauges, note_watched
from hooksaga.operations.watch_endpoints import Step, Watched, take_steps
from hooksaga.stages.telemetry import note_refused

function = Function(Role.HEALTH_MONITOR)


def handler(event: Event, context: Any) -> Any:
    """Handle a tick: returns `{"attempts": n, "verdicts": n, "events": n}`."""
    expect(event, Trigger.TICK)
    return function.run(run, event, context)


async def run(function: Function, invocation: Invocation) -> dict[str, int]:
    counts = {"attempts": 0, "verdicts": 0, "events": 0}

    async def take(step: Step) -> None:
        while invocation.seconds_left() > 0:
            done = await _take(function, step)
            counts["attempts"] += done.attempts
            counts["verdicts"] += len(done.verdicts)
            counts["events"] += len(done.events)
            if not done.more:
                break

    try:
        await take_steps(take)
    finally:  # a step that fails must not hide that subscriptions wait
        note_flow_gauges(await function.session.run(read_flow_gauges))
    return counts


async def _take(function: Function, step: Step) -> Watched:
    done = await function.session.run(step, policy=function.settings.health_policy)
    note_watched(done)
    note_refused(done.refused)
    await wake_router(function.queues, done.events)
    return done
