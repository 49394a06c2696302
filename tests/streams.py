"""Servers of the tests' own on asyncio's streams, and the threads that some of them run in."""

import asyncio
import threading
from asyncio import transports
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def closing(serve: Serve) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
    """For `asyncio.start_server`: each connection is closed after it was served, also when that was cancelled
    before its first step, in which case no `finally` of its own would run."""
    serving: dict[asyncio.Future[None], asyncio.StreamWriter] = {}

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        serving[task] = writer
        task.add_done_callback(lambda task: serving.pop(task).close())

    return connected


class LoopThread:
    """An event loop in a thread. `enter` is run in the thread before anything else."""

    def __init__(self, name: str, enter: Callable[[], None] = lambda: None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=[enter], name=name)
        self._thread.start()

    def _run(self, enter: Callable[[], None]) -> None:
        enter()
        self._loop.run_forever()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        self.do(_abort_what_is_open())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()


async def _abort_what_is_open() -> None:
    """No server knows the connections that are cut amid their TLS handshake, and a close takes a few turns."""
    connections: Mapping[int, transports.WriteTransport] = vars(asyncio.get_running_loop())["_transports"]
    for connection in list(connections.values()):
        connection.abort()
    for _ in range(10):
        await asyncio.sleep(0)
