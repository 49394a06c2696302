"""The event loop of what runs for long on this machine: uvloop, where there is one."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hooksaga.worker.descriptors import raise_descriptor_limit

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, with as many files open as this process may have. TLS and the database's socket cost about a
    tenth less of a delivery's time."""
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as loop:
        return loop.run(main)


def forget_what_stays() -> None:
    """Once everything is loaded: a collection of garbage need not look at it each time, which stops the loop."""
    gc.collect()
    gc.freeze()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:  # there is none for Windows
        return None
    return uvloop.new_event_loop
