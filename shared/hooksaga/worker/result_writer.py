"""Writes how POSTs ended: results that come in numbers wait a moment for each other and go in one statement.

A result whose row somebody has locked, with psql say, is kept and tried again, and delays no other (decision 59).
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import partial

from hooksaga.adapters.database import Session
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.telemetry import note_attempts, note_refused

GATHER_SECONDS = 0.02
"""How long a claim of a backlog, or results that come in numbers, wait for more to go with them."""

MANY = 8
"""A statement of so many rows is likely to be followed by another."""

MOST_UNWRITTEN = 1000
"""Nothing is claimed while so many results wait to be written."""

LOCKED_PAUSE_SECONDS = 0.2
"""A result whose row somebody has locked is tried again after that, for as long as the job is this worker's."""

LOCKED_AT_STOP_SECONDS = 5.0
"""For so long a process that stops tries to write those."""

MOST_LOCKED = 5 * MOST_UNWRITTEN
"""Nothing is claimed either while so many are kept because of locks."""


class ResultWriter:
    """Writes results of all lanes through one session: whatever has gathered goes in one statement."""

    def __init__(self, session: Session, worker_id: str, applied: asyncio.Event) -> None:
        self._session = session
        self.worker_id = worker_id
        self._results_ready = applied
        self._waiting: list[AttemptResult] = []
        self._writing: Sequence[AttemptResult] = ()
        self._locked: dict[int, AttemptResult] = {}
        self._try_locked_at = 0.0
        self._more = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._stopping = False

    def write(self, result: AttemptResult) -> None:
        """The result is committed soon, or dropped because its lease was lost."""
        self._waiting.append(result)
        self._more.set()
        if len(self._waiting) >= MOST_UNWRITTEN:
            self._has_room.clear()

    @property
    def in_hand(self) -> list[int]:
        """The jobs whose results are not written yet."""
        return [result.job.id for result in (*self._waiting, *self._writing, *self._locked.values())]

    async def until_room(self) -> None:
        """Until results can be taken without ever more of them gathering."""
        await self._has_room.wait()

    def let_go(self) -> None:
        """Whoever waits for room has to wait no more."""
        self._has_room.set()

    async def run(self) -> None:
        """Write until stopped. While the database is away results are kept, and tried again."""
        many = False
        while not self._stopping or self._waiting:
            await self._until_there_is_some()
            if many and not self._stopping:
                await asyncio.sleep(GATHER_SECONDS)
            batch = self._take()
            many = len(batch) >= MANY
            if batch:
                await self._write_until_done(batch)
            if self._stopping or len(self._locked) < MOST_LOCKED:
                self._has_room.set()
        await self._write_locked_for_the_last_time()

    async def _until_there_is_some(self) -> None:
        """Until a result comes, or one whose row was locked is to be tried again."""
        if self._locked:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._try_locked_at - time.monotonic()):
                    await self._more.wait()
        else:
            await self._more.wait()
        self._more.clear()

    def _take(self) -> list[AttemptResult]:
        """Whatever has gathered, and from time to time what was locked."""
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
        """False when the database is away."""
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
        except Exception:  # noqa: BLE001 - a fault of ours: the leases end, the jobs are tried again
            logger.exception("results not written", extra={"jobs": len(results)})
            self._keep_locked(results, set())
            return True
        if written:
            self._results_ready.set()
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
        ):  # of two claims the later one stays
            self._locked.pop(result.job.id, None)
            if result.job.id in locked:
                self._locked[result.job.id] = result
        if len(self._locked) >= MOST_LOCKED and not self._stopping:
            self._has_room.clear()

    async def _write_locked_for_the_last_time(self) -> None:
        """What is left after that has its lease end, and is tried again."""
        give_up_at = time.monotonic() + LOCKED_AT_STOP_SECONDS
        while self._locked and time.monotonic() < give_up_at:
            if not await self._write(list(self._locked.values())):
                return
            await asyncio.sleep(LOCKED_PAUSE_SECONDS if self._locked else 0)

    def stop(self) -> None:
        """Write what has gathered, then let `run` return."""
        self._stopping = True
        self._more.set()
        self._has_room.set()

    async def close(self) -> None:
        await self._session.close()
