"""How commands run coroutines, and what Ctrl-C and SIGTERM mean to those that run for long."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, on uvloop where there is one."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:  # there is none for Windows
        return None
    return uvloop.new_event_loop


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
