"""Retention: a tick every minute continues erasures, then deletes what is old enough, in paced batches. It also
measures how far behind it is."""

import asyncio
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.aws.function import SECONDS_FOR_ONE_BATCH, Event, Function, Invocation
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.operations.erasures import step_erasure
from hooksaga.operations.prune import (
    Deleted,
    Place,
    Pruned,
    Pruning,
    RetentionWalk,
    plan_retention,
    prune_batch,
)
from hooksaga.operations.telemetry import note_erased, note_lag, note_pruned

function = Function(Role.RETENTION)


def handler(event: Event, context: Any) -> Any:
    """Handle a tick: returns the numbers of deleted rows by kind."""
    expect(event, Trigger.TICK)
    return function.run(run, event, context)


async def run(function: Function, invocation: Invocation) -> dict[str, int]:
    await _erase(function, invocation)
    policy = function.settings.retention_policy
    note_lag(await function.session.run(plan_retention, policy=policy))
    walk, total = RetentionWalk(policy), Deleted()

    async def run_batch(wanted: Pruning, after: Place | None) -> Pruned:
        return await function.session.run(prune_batch, wanted=wanted, after=after)

    while invocation.seconds_left() > SECONDS_FOR_ONE_BATCH:
        done = await walk.step(run_batch)
        if done is None:
            break
        note_pruned(done)
        total = total.plus(done)
        if walk.begins or invocation.seconds_left() - walk.rest_seconds <= SECONDS_FOR_ONE_BATCH:
            break
        await asyncio.sleep(walk.rest_seconds)
    return total.counts()


async def _erase(function: Function, invocation: Invocation) -> None:
    """Step erasures until none can go on. What they end is found by the orchestrator's sweep."""
    while invocation.seconds_left() > SECONDS_FOR_ONE_BATCH:
        step = await function.session.run(step_erasure)
        note_erased(step)
        if not step.more:
            return
