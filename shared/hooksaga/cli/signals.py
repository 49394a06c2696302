"""Handling of Ctrl-C and SIGTERM in commands that run until they are stopped."""

import signal
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def stop_on_signals() -> "asyncio.Event":
    """Return an event that is set at the first SIGINT or SIGTERM. A second signal ends the process at once.

    Call it in the main thread's event loop.
    """
    import asyncio

    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def at_first(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, at_first)
    return stop


def interrupt_on_sigterm() -> None:
    """Make SIGTERM act like Ctrl-C: the command is cancelled and cleans up."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
