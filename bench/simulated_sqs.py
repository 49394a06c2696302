"""Discrete events: processes that sleep, and queues whose messages Lambda hands to copies of a function."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

from hooksaga.cost.work import POLLERS

Process = Generator[float, None, Any]
"""Yields the seconds until it goes on."""

Handler = Callable[[list[Any]], Process]
"""An invocation with a batch of messages. The copy is free when it ends."""


class Loop:
    """The clock, which stands at `now`, and what is to happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def call(self, after: float, function: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + after, next(self._numbers), function))

    def spawn(self, process: Process) -> None:
        """Run a process from now on."""
        pause = next(process, None)
        if pause is not None:
            self.call(pause, lambda: self.spawn(process))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, function = heapq.heappop(self._events)
            function()
        self.now = until


class Source:
    """A queue and its event source mapping. Each free copy takes what is there, at most a batch.

    So few messages come in many small batches, each with a copy of its own. AWS takes somewhat larger ones, and needs
    fewer copies. With a window, POLLERS pollers gather a batch each, until it is full or the window over.
    receive_seconds: from the message to the invocation.
    """

    def __init__(
        self,
        loop: Loop,
        handler: Handler,
        *,
        copies: int,
        batch: int,
        receive_seconds: float,
        window_seconds: float = 0,
    ) -> None:
        self.messages, self.invocations, self.busy_seconds, self.deepest = 0, 0, 0.0, 0
        self._loop = loop
        self._handler = handler
        self._free = self.copies = copies
        self._batch = batch
        self._receive_seconds = receive_seconds
        self._window_seconds = window_seconds
        self._waiting: deque[Any] = deque()
        self._gathered: deque[list[Any]] = deque()
        self._pollers: list[list[Any]] = [[] for _ in range(POLLERS)]
        self._turns = itertools.cycle(range(POLLERS))

    def put(self, messages: Sequence[Any]) -> None:
        if self._window_seconds:
            for message in messages:
                self._gather(next(self._turns), message)
        else:
            self._waiting.extend(messages)
        self._take()
        self.deepest = max(self.deepest, len(self._waiting) + sum(map(len, self._gathered)))

    def put_later(self, after: float, messages: Sequence[Any]) -> None:
        if messages:
            self._loop.call(after, lambda: self.put(messages))

    def _gather(self, poller: int, message: Any) -> None:
        batch = self._pollers[poller]
        batch.append(message)
        if len(batch) == 1:
            self._loop.call(self._window_seconds, lambda: self._close(poller, batch))
        if len(batch) == self._batch:
            self._close(poller, batch)

    def _close(self, poller: int, batch: list[Any]) -> None:
        if self._pollers[poller] is batch:
            self._pollers[poller] = []
            self._gathered.append(batch)
            self._take()

    def _take(self) -> None:
        while self._free and (self._gathered or self._waiting):
            if self._gathered:
                batch = self._gathered.popleft()
            else:
                batch = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
            self._free -= 1
            self.messages += len(batch)
            self.invocations += 1
            self._loop.spawn(self._invoke(batch))

    def _invoke(self, batch: list[Any]) -> Process:
        yield self._receive_seconds
        started = self._loop.now
        yield from self._handler(batch)
        self.busy_seconds += self._loop.now - started
        self._free += 1
        self._take()
