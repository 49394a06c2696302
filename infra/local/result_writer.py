"""Writes how POSTs ended: results that come in numbers wait a moment for each other and go in one statement."""

import asyncio
from collections.abc import Sequence
from functools import partial

from shared.adapters.database import Session
from shared.core.errors import DatabaseUnavailable, RefusedRow
from shared.runtime import telemetry
from shared.stages import deliver
from shared.stages.deliver import AttemptResult

GATHER_SECONDS = 0.02
"""How long a claim of a backlog, or results that come in numbers, wait for more to go with them."""

MANY = 8
"""A statement of so many rows is likely to be followed by another."""

MOST_UNWRITTEN = 1000
"""Nothing is claimed while so many results wait to be written."""


class ResultWriter:
    """Writes results of all lanes through one session: whatever has gathered goes in one statement."""

    def __init__(self, session: Session, worker_id: str, applied: asyncio.Event) -> None:
        self._session = session
        self._worker_id = worker_id
        self._results_ready = applied
        self._waiting: list[AttemptResult] = []
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
            await self._more.wait()
            self._more.clear()
            if many and not self._stopping:
                await asyncio.sleep(GATHER_SECONDS)
            batch, self._waiting = self._waiting, []
            many = len(batch) >= MANY
            if batch:
                await self._write_until_done(batch)
            self._has_room.set()

    async def _write_until_done(self, results: Sequence[AttemptResult]) -> None:
        pause = 0.1
        while True:
            refused: list[RefusedRow] = []
            try:
                written = await self._session.run(
                    partial(
                        deliver.record_results,
                        results=results,
                        worker_id=self._worker_id,
                        on_refusal=refused.append,
                    )
                )
            except DatabaseUnavailable as error:
                telemetry.logger.warning(
                    "results not written yet", extra={"jobs": len(results), "error": str(error)}
                )
                if self._stopping:
                    return  # their leases end, and the jobs are tried again
                await asyncio.sleep(pause)
                pause = min(5.0, pause * 2)
                continue
            except Exception:  # noqa: BLE001 - a fault of ours: the leases end, the jobs are tried again
                telemetry.logger.exception("results not written", extra={"jobs": len(results)})
                return
            self._results_ready.set()
            telemetry.note_refused(refused)
            telemetry.note_attempts(results, written, self._worker_id)
            return

    def stop(self) -> None:
        """Write what has gathered, then let `run` return."""
        self._stopping = True
        self._more.set()
        self._has_room.set()

    async def close(self) -> None:
        await self._session.close()
