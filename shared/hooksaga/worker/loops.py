"""Loops of one process: each repeats a step while it finds work, and else waits for a wake or for the next poll."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.telemetry import logger

POLL_SECONDS = 1.0

Step: TypeAlias = Callable[[], Awaitable[bool]]
"""True when it found work, so that more may wait."""


def rest_after(failures: int) -> float:
    """Seconds that a loop rests after so many failures in a row, one or more."""
    return min(5.0, 0.1 * 2 ** min(failures, 6))


async def rest(event: asyncio.Event, seconds: float) -> None:
    """Until the event, or the time and up to a tenth more, so that processes do not poll in step."""
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
        except Exception:  # noqa: BLE001 - a fault of ours is logged with its trace, and the loop goes on
            failures += 1
            logger.exception("loop failed", extra={"loop": name})
        if failures:
            await rest(stopping, rest_after(failures))
        elif not found_work:
            await rest(wake, rest_seconds())
