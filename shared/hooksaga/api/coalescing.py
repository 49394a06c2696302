"""Coalescing: concurrent callers share one database statement.

While a batch runs, the next callers are gathered; when it ends, they run together. A single caller never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Coalescer(Generic[Item, Answer]):
    """Turns a function over batches into one over single items, for use within one event loop.

    `run` returns one result per item, in order; its exceptions reach every caller of that batch.
    """

    def __init__(
        self, run: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]], *, max_batch: int = 500
    ) -> None:
        self._run = run
        self._max_batch = max_batch
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
                await self._run_batch(batch)
        finally:
            self._worker = None

    async def _run_batch(self, batch: list[tuple[Item, "asyncio.Future[Answer]"]]) -> None:
        try:
            answers = await self._run([item for item, _ in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{len(answers)} answers to {len(batch)} items")
        except Exception as error:  # noqa: BLE001 - it is raised in the waiting callers
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
