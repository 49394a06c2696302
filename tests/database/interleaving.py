"""Work on several connections at once, in an order that a test chooses: statement by statement, and COMMIT apart.

An actor is one connection of one role. Its work stops where the test wants it to: before each statement but the first,
and before COMMIT, with every lock that it holds until then. Work that has to wait for a lock of another actor waits,
and goes on by itself when that lock is gone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import Any, LiteralString, TypeVar, cast

import psycopg
from psycopg import AsyncCursor

from hooksaga.adapters.database import Connection, DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.core.errors import HooksagaError

T = TypeVar("T")

BLOCKED: LiteralString = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
PATIENT: Sequence[LiteralString] = (
    "SET lock_timeout = 0",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
)
"""An actor waits for as long as the test takes to let the others go on."""


class Pace(Enum):
    """How a piece of work is done."""

    WHOLE = auto()  # to its end, if no lock stops it
    STEPS = auto()  # as far as its next stop
    DEAF = auto()  # whole, and whoever asked for it never learns that it was committed


class _StoppingCursor(AsyncCursor[Any]):
    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        actor: Actor | None = getattr(self.connection, "actor", None)
        if actor is not None:
            await actor.before_statement()
        return await super().execute(*args, **kwargs)


class Actor:
    """One connection, at one piece of work at a time."""

    def __init__(self, name: str, role: Role, address: DatabaseAddress, watcher: Connection) -> None:
        self.name = name
        self._conninfo = role_conninfo(address, role)
        self._watcher = watcher
        self._connection: Connection | None = None
        self._task: asyncio.Task[Any] | None = None
        self._finish: Callable[[Any], None] = lambda _: None
        self._stops = False
        self._has_begun = False
        self._let_go = asyncio.Event()
        self.is_stopped = False
        self.waits_for_a_lock = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    async def before_statement(self) -> None:
        if self._has_begun:
            await self._stop_here()
        self._has_begun = True

    async def _stop_here(self) -> None:
        if self._stops:
            self.is_stopped = True
            await self._let_go.wait()
            self._let_go.clear()
            self.is_stopped = False

    async def begin(
        self, work: Callable[[Connection], Awaitable[T]], finish: Callable[[T], None], *, stops: bool
    ) -> None:
        """Do the work in one transaction. `finish` gets the answer, or the error of ours, once it is over."""
        assert not self.is_busy, self.name
        connection = await self._ready()
        self._stops, self._has_begun, self._finish = stops, False, cast(Callable[[Any], None], finish)
        self._task = asyncio.create_task(self._work(connection, work))
        await self.settle()

    async def _work(self, connection: Connection, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with connection.transaction():
            answer = await work(connection)
            await self._stop_here()
        return answer

    async def _ready(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, prepare_threshold=None, cursor_factory=_StoppingCursor
            )
            for setting in PATIENT:
                await self._connection.execute(setting)
            cast(Any, self._connection).actor = self
        return self._connection

    async def go_on(self, *, to_the_end: bool = False) -> None:
        """Leave the stop, for the next one."""
        self._stops = self._stops and not to_the_end
        if self.is_stopped:
            self.is_stopped = False
            self._let_go.set()
        await self.settle()

    async def settle(self) -> None:
        """Wait until the work is over, has come to a stop, or has to wait for a lock."""
        self.waits_for_a_lock = False
        deadline = time.monotonic() + 20
        while self._task is not None and not self.is_stopped:
            done, _ = await asyncio.wait({self._task}, timeout=0.003)
            if done:
                self._end(self._task)
            elif not self.is_stopped and await self._is_blocked():
                self.waits_for_a_lock = True
                return
            assert time.monotonic() < deadline, f"{self.name} neither works nor waits for a lock"

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._task = None
        error = task.exception()
        if error is not None and not isinstance(error, HooksagaError):
            raise AssertionError(f"{self.name} failed") from error
        self._finish(error or task.result())

    async def _is_blocked(self) -> bool:
        assert self._connection is not None
        pid = self._connection.info.backend_pid
        answer = await (await self._watcher.execute(BLOCKED, [pid])).fetchone()
        return bool(answer and answer[0])

    async def break_off(self) -> None:
        """The connection is lost: what it had not committed is gone, and nobody is told anything."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, psycopg.Error):
                await task
        await self.close()
        self.is_stopped = self.waits_for_a_lock = False
        self._let_go.clear()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def settle_waiting(actors: Iterable[Actor]) -> None:
    """Let those go on whose lock may be free by now, until none of them can."""
    waiting = [actor for actor in actors if actor.waits_for_a_lock]
    while waiting:
        for actor in waiting:
            await actor.settle()
        still = [actor for actor in waiting if actor.waits_for_a_lock]
        waiting = still if len(still) < len(waiting) else []
