"""Write the results of POSTs: when many arrive, they are gathered for a moment and written in one statement.

A result whose row another session has locked, with psql for example, is kept and retried, and delays no other
(decision 59).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from hooksaga.adapters.database import Session
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.telemetry import note_attempts, note_refused

GATHER_SECONDS = 0.02
"""Time that a claim from a backlog, or many arriving results, wait for more to share the statement."""

MANY = 8
"""A statement with this many rows is likely to be followed by another."""

MAX_UNWRITTEN = 1000
"""Nothing is claimed while so many results wait to be written."""

LOCKED_PAUSE_SECONDS = 0.2
"""A result whose row another session has locked is retried after this time, as long as this worker holds the lease."""

LOCKED_AT_STOP_SECONDS = 5.0
"""A stopping process retries those results for this time."""

MAX_LOCKED = 5 * MAX_UNWRITTEN
"""Nothing is claimed either while this many results wait because of locks."""


class ResultWriter:
    """Writes the results of all lanes through one session: all gathered results in one statement."""

    def __init__(
        self, session: Session, worker_id: str, on_written: Callable[[Iterable[int]], object]
    ) -> None:
        """on_written: called with the jobs whose results are committed."""
        self._session = session
        self.worker_id = worker_id
        self._on_written = on_written
        self._waiting: list[AttemptResult] = []
        self._writing: Sequence[AttemptResult] = ()
        self._locked: dict[int, AttemptResult] = {}
        self._try_locked_at = 0.0
        self._more = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._stopping = False

    def write(self, result: AttemptResult) -> None:
        """Queue a result. It is committed soon, or dropped if its lease was lost."""
        self._waiting.append(result)
        self._more.set()
        if len(self._waiting) >= MAX_UNWRITTEN:
            self._has_room.clear()

    @property
    def in_hand(self) -> list[int]:
        """Return the jobs whose results are not written yet."""
        return [result.job.id for result in (*self._waiting, *self._writing, *self._locked.values())]

    async def until_room(self) -> None:
        """Wait until the queue has room, so that it cannot grow without limit."""
        await self._has_room.wait()

    def let_go(self) -> None:
        """Release every task that waits for room."""
        self._has_room.set()

    async def run(self) -> None:
        """Write until stopped. While the database is unavailable, results are kept and retried."""
        many = False
        while not self._stopping or self._waiting:
            await self._until_there_is_some()
            if many and not self._stopping:
                await asyncio.sleep(GATHER_SECONDS)
            batch = self._take()
            many = len(batch) >= MANY
            if batch:
                await self._write_until_done(batch)
            if self._stopping or len(self._locked) < MAX_LOCKED:
                self._has_room.set()
        await self._write_locked_for_the_last_time()

    async def _until_there_is_some(self) -> None:
        """Wait for a result, or for the time to retry one whose row was locked."""
        if self._locked:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._try_locked_at - time.monotonic()):
                    await self._more.wait()
        else:
            await self._more.wait()
        self._more.clear()

    def _take(self) -> list[AttemptResult]:
        """Take all gathered results, and from time to time those whose rows were locked."""
        batch, self._waiting = self._waiting, []
        if self._locked and time.monotonic() >= self._try_locked_at:
            batch += self._locked.values()
            self._try_locked_at = time.monotonic() + LOCKED_PAUSE_SECONDS
        return batch

    async def _write_until_done(self, results: Sequence[AttemptResult]) -> None:
        pause = 0.1
        self._writing = results
        while not await self._write(results):
            if self._stopping:
                break  # their leases end, and the jobs are tried again
            await asyncio.sleep(pause)
            pause = min(5.0, pause * 2)
        self._writing = ()

    async def _write(self, results: Sequence[AttemptResult]) -> bool:
        """Write the results. Returns False when the database is unavailable."""
        refused: list[RefusedRow] = []
        locked: set[int] = set()
        try:
            written = await self._session.run(
                partial(
                    deliver.record_results,
                    results=results,
                    worker_id=self.worker_id,
                    on_refusal=refused.append,
                    on_locked=locked.add,
                )
            )
        except DatabaseUnavailable as error:
            logger.warning("results not written yet", extra={"jobs": len(results), "error": str(error)})
            return False
        except Exception:  # noqa: BLE001 - an internal error: the leases expire, the jobs are retried
            logger.exception("results not written", extra={"jobs": len(results)})
            self._keep_locked(results, set())
            return True
        if written:
            self._on_written(written)
        note_refused(refused)
        self._keep_locked(results, locked - written)
        ended = [result for result in results if result.job.id not in self._locked]
        note_attempts(ended, written, self.worker_id)
        return True

    def _keep_locked(self, results: Sequence[AttemptResult], locked: set[int]) -> None:
        new = locked - self._locked.keys()
        if new:
            logger.warning("results wait for a lock", extra={"jobs": len(new)})
        if not self._locked:
            self._try_locked_at = time.monotonic() + LOCKED_PAUSE_SECONDS
        for result in sorted(
            results, key=lambda one: one.job.claim_count
        ):  # of two claims the later one wins
            self._locked.pop(result.job.id, None)
            if result.job.id in locked:
                self._locked[result.job.id] = result
        if len(self._locked) >= MAX_LOCKED and not self._stopping:
            self._has_room.clear()

    async def _write_locked_for_the_last_time(self) -> None:
        """Write the locked results one last time. Jobs left after that are retried once their lease expires."""
        give_up_at = time.monotonic() + LOCKED_AT_STOP_SECONDS
        while self._locked and time.monotonic() < give_up_at:
            if not await self._write(list(self._locked.values())):
                return
            await asyncio.sleep(LOCKED_PAUSE_SECONDS if self._locked else 0)

    def stop(self) -> None:
        """Write all gathered results, then let `run` return."""
        self._stopping = True
        self._more.set()
        self._has_room.set()

    async def close(self) -> None:
        await self._session.close()
