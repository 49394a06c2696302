"""The receivers of tests/delivery in a thread of their own, one listener for each way to misbehave."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

from tests.streams import LoopThread

T = TypeVar("T")


class RawReceivers:
    """Listen from `open` to `close`."""

    def __init__(self) -> None:
        self._thread = LoopThread("raw receivers")
        self._stack = AsyncExitStack()

    def open(self, listener: AbstractAsyncContextManager[T]) -> T:
        return self._thread.do(self._stack.enter_async_context(listener))

    def close(self) -> None:
        self._thread.do(self._stack.aclose())
        self._thread.close()
