"""Lease cleaning: a tick every minute (spec §5). The orchestrator's sweep sends what was reset on its way again."""

from functools import partial
from typing import Any

from shared.adapters.database import Role
from shared.core.errors import RefusedRow
from shared.runtime.function import Event, Function, Invocation
from shared.runtime.telemetry import note_refused, note_resets
from shared.runtime.triggers import Trigger, expect
from shared.stages.clean_leases import BATCH, clean_leases
from shared.stages.work_state import begin_work

function = Function(Role.LEASE_CLEANER)


def handler(event: Event, context: Any) -> Any:
    """A tick in, `{"reset": n}` out."""
    expect(event, Trigger.TICK)
    return function.run(run, event, context)


async def run(function: Function, invocation: Invocation) -> dict[str, int]:
    await function.session.run(begin_work)
    count = 0
    refused: list[RefusedRow] = []
    while invocation.seconds_left() > 0:
        resets = await function.session.run(
            partial(
                clean_leases,
                max_lost_leases=function.settings.max_lost_leases,
                on_refusal=refused.append,
            )
        )
        note_resets(resets)
        count += len(resets)
        if len(resets) < BATCH:
            break
    note_refused(refused)
    return {"reset": count}
