"""Lease cleaning: a tick every minute. The orchestrator's sweep dispatches the reset jobs again."""

from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import RefusedRow
from hooksaga.operations.work_state import begin_work
from hooksaga.stages.clean_leases import BATCH, clean_leases
from hooksaga.stages.telemetry import note_refused, note_resets

function = Function(Role.LEASE_CLEANER)


def handler(event: Event, context: Any) -> Any:
    """Handle a tick: returns `{"reset": n}`."""
    expect(event, Trigger.TICK)
    return function.run(run, event, context)


async def run(function: Function, invocation: Invocation) -> dict[str, int]:
    await function.session.run(begin_work)
    count = 0
    refused: list[RefusedRow] = []
    while invocation.seconds_left() > 0:
        resets = await function.session.run(
            clean_leases, max_lost_leases=function.settings.max_lost_leases, on_refusal=refused.append
        )
        note_resets(resets)
        count += len(resets)
        if len(resets) < BATCH:
            break
    note_refused(refused)
    return {"reset": count}
