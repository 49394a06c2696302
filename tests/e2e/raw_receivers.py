"""The receivers of tests/delivery in a thread of their own, one listener for each way to misbehave."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

T = TypeVar("T")


class RawReceivers:
    """Listen from `open` to `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="raw receivers")
        self._thread.start()
        self._stack = AsyncExitStack()

    def open(self, listener: AbstractAsyncContextManager[T]) -> T:
        return self._do(self._stack.enter_async_context(listener))

    def close(self) -> None:
        self._do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
