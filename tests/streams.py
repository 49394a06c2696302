"""Servers of the tests' own on asyncio's streams."""

import asyncio
from collections.abc import Awaitable, Callable

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
