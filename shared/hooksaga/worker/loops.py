"""Loops of one process: each repeats a step while it finds work, then waits for a wake or the next poll."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.telemetry import logger

POLL_SECONDS = 1.0
"""Rest of a loop whose work may come from outside: events and operations that others put into the database."""

IDLE_SECONDS = 4.0
"""Rest of a loop whose work this process tells it of, after a look has found nothing: whatever a hint has missed, and
what other processes left. Shorter than the time after which an idle connection is checked before its next use."""

Step: TypeAlias = Callable[[], Awaitable[bool]]
"""A step of a loop. Returns True when it found work, so that more may wait."""


def rest_after(failures: int) -> float:
    """Return the seconds that a loop rests after `failures` consecutive failures, at least one."""
    return min(5.0, 0.1 * 2 ** min(failures, 6))


async def rest(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, or for the time plus up to a tenth, so that processes do not poll in step."""
    try:
        async with asyncio.timeout(seconds * random.uniform(1, 1.1)):  # noqa: S311 - no secret
            await event.wait()
    except TimeoutError:
        return


async def run_loop(
    name: str,
    step: Step,
    wake: asyncio.Event,
    stopping: asyncio.Event,
    rest_seconds: Callable[[], float] = lambda: POLL_SECONDS,
) -> None:
    """Repeat a step until `stopping` is set. A fault is logged with the loop's name, and the step is tried again."""
    failures = 0
    while not stopping.is_set():
        wake.clear()
        found_work = False
        try:
            found_work = await step()
            failures = 0
        except DatabaseUnavailable as error:
            failures += 1
            logger.warning("database unavailable", extra={"loop": name, "error": str(error)})
        except Exception:  # noqa: BLE001 - an internal error is logged with its trace, and the loop continues
            failures += 1
            logger.exception("loop failed", extra={"loop": name})
        if failures:
            await rest(stopping, rest_after(failures))
        elif not found_work:
            await rest(wake, rest_seconds())
