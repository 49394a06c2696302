"""Handling of Ctrl-C and SIGTERM in commands that run until they are stopped."""

import asyncio
import signal
from types import FrameType


def stop_on_signals() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM. The second one ends the process at once, as if nobody had asked.

    To be called in the main thread's event loop.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def at_first(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, at_first)
    return stop


def interrupt_on_sigterm() -> None:
    """From now on SIGTERM does what Ctrl-C does to the command: it is cancelled, and cleans up first."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
