"""Delivery loop of polling mode: claims jobs, POSTs them, and has their results written.

The starter names the jobs that it has started; from time to time the lane looks for others that wait, oldest first: of
workers that died, and of processes that started more than they could send. A lane needs no fairness of its own,
because the orchestrator starts attempts only into the room of each subscription. Jobs of slow subscriptions have a lane
of their own. Jobs whose workers died repeatedly are sent one at a time: one of them may be what kills its workers.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from hooksaga.adapters.database import Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.flow import SLOW_MS
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.telemetry import note_claimed
from hooksaga.worker.loops import POLL_SECONDS
from hooksaga.worker.payload_memory import PayloadMemory
from hooksaga.worker.places import WorkerPlaces
from hooksaga.worker.result_writer import (
    GATHER_SECONDS,
    LOCKED_AT_STOP_SECONDS,
    LOCKED_PAUSE_SECONDS,
    ResultWriter,
)

SHUTDOWN_SECONDS = 20
"""At shutdown, POSTs in flight may take this long to end; the remaining jobs are handed back."""

MAX_AT_ONCE = 2
"""POSTs that start, and so mostly end, in one turn of the event loop, which the API and the other loops share."""

LARGE_PAYLOAD = 4096
LOST_CLAIM_SECONDS = 5.0
"""A claim whose answer was lost may still be committed for so long."""


@dataclass(frozen=True, slots=True)
class LaneParts:
    """Parts that the lanes of one process share. on_claimed: called after each claim."""

    writer: ResultWriter
    settings: Settings
    sender: HttpSender
    box: SecretBox
    worker_id: str
    places: WorkerPlaces
    on_claimed: Callable[[], object] = lambda: None


class DeliveryLane:
    """One lane, with its own places for POSTs in flight. A POST that takes longer than SLOW_MS continues in a place of
    the slow lane, and more may continue there than it has places."""

    def __init__(self, *, slow: bool, session: Session, wake: asyncio.Event, parts: LaneParts) -> None:
        self._slow = slow
        self._places = parts.places.slow if slow else parts.places.quick
        self._late: set[asyncio.Task[None]] = set()
        self._session = session
        self._wake = wake
        self._parts = parts
        self._settings = parts.settings
        self._in_flight: dict[asyncio.Task[None], ClaimedJob] = {}
        self._memory = PayloadMemory(parts.settings.payload_max_bytes)
        self._alone_from = deliver.alone_from_lost(parts.settings.max_lost_leases)
        self._alone: tuple[ClaimedJob, float] | None = None
        self._locked: list[ClaimedJob] = []
        self._looks_at = self._lost_claims_until = 0.0
        self._has_backlog = False
        self._stopping = False

    async def step(self) -> bool:
        """Claim once and start the POSTs. Returns whether more jobs wait."""
        await self._wait_for_place()
        if self._stopping:
            return False
        limit = min(self._places.free, self._memory.room)
        asked, claimed_at = self._places.next_jobs(limit), time.monotonic()
        if looks := not asked or claimed_at >= self._looks_at:
            self._looks_at = claimed_at + POLL_SECONDS
            await self._hand_back_lost_claims()
        try:
            jobs = await self._claim(None if looks else asked, limit)
        except DatabaseUnavailable:
            self._lost_claims_until, self._looks_at = time.monotonic() + LOST_CLAIM_SECONDS, 0.0
            raise
        note_claimed(jobs)
        self._places.claim([] if looks else asked, {job.id: job.subscription_id for job in jobs})
        self._parts.on_claimed()
        if self._stopping:
            await self._hand_back(jobs)
            return False
        self._has_backlog = len(jobs) >= limit
        if looks and self._has_backlog:
            self._looks_at = 0.0
        self._memory.take([len(job.payload) for job in jobs])
        for number, job in enumerate(jobs):
            if number % MAX_AT_ONCE == MAX_AT_ONCE - 1:
                await asyncio.sleep(0)
            self._begin(job, claimed_at)
        return self._has_backlog or self._places.unclaimed > 0

    async def _claim(self, job_ids: Sequence[int] | None, limit: int) -> list[ClaimedJob]:
        """Claim these jobs, or the oldest that wait. Those that were started here are known: a look walks over whatever
        a long transaction keeps from being cleaned up."""
        claim = (
            partial(deliver.claim_waiting_jobs, slow=self._slow, limit=limit)
            if job_ids is None
            else partial(deliver.claim_jobs, job_ids=job_ids)
        )
        return await self._session.run(
            partial(
                claim,
                worker_id=self._parts.worker_id,
                lease_seconds=self._settings.lease_seconds,
                alone_from=self._alone_from,
                one_alone=not self._sends_alone(),
            )
        )

    async def _hand_back_lost_claims(self) -> None:
        """After a claim without an answer: release what it may have leased, which would wait for its lease to end."""
        if time.monotonic() >= self._lost_claims_until:
            return
        in_hand = [*(job.id for job in self._in_flight.values()), *self._parts.writer.in_hand]
        released = await self._session.run(
            partial(
                deliver.hand_back_lost_claims,
                worker_id=self._parts.worker_id,
                slow=self._slow,
                in_hand=in_hand,
            )
        )
        if released:
            logger.warning("lost claims handed back", extra={"jobs": released})

    def _sends_alone(self) -> bool:
        """Return whether a job that must be alone among its kind is in flight; never longer than its lease."""
        return self._alone is not None and time.monotonic() < self._alone[1] + self._settings.lease_seconds

    async def _wait_for_place(self) -> None:
        """Wait for a place, and for memory for another payload. With a backlog, wait for GATHER_SECONDS or until a
        quarter of the places is free, because a statement for many jobs costs little more than one for a few."""
        give_up_at = time.monotonic() + GATHER_SECONDS
        while self._has_backlog and not self._stopping and self._places.free < self._places.total // 4:
            if not await self._until_freed(give_up_at - time.monotonic()):
                break
        if not self._stopping:
            await self._parts.writer.until_room()
        while (self._places.free <= 0 or self._memory.is_full) and not self._stopping:
            await self._until_freed(None)

    async def _until_freed(self, seconds: float | None) -> bool:
        """Wait for the end of a POST. Returns False when the time is over."""
        self._places.freed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._places.freed.wait()
                return True
        return False

    def _begin(self, job: ClaimedJob, claimed_at: float) -> None:
        if job.alone:
            self._alone = (job, claimed_at)
        task = asyncio.create_task(self._deliver(job, claimed_at))
        self._in_flight[task] = job
        task.add_done_callback(self._end)
        if not self._slow:
            late = asyncio.get_running_loop().call_later(SLOW_MS / 1000, self._pass_on, task)
            task.add_done_callback(lambda _: late.cancel())

    def _pass_on(self, task: "asyncio.Task[None]") -> None:
        if task not in self._in_flight:
            return
        subscription_id, places = self._in_flight[task].subscription_id, self._parts.places
        places.note_late(subscription_id)
        if len(self._late) < self._places.total:
            self._late.add(task)
            self._places.end(subscription_id)
            places.slow.begin(subscription_id)

    def _end(self, task: "asyncio.Task[None]") -> None:
        job = self._in_flight.pop(task)
        is_late = task in self._late
        self._late.discard(task)
        (self._parts.places.slow if is_late else self._places).end(job.subscription_id)
        self._memory.give_back(len(job.payload))
        if self._alone is not None and job is self._alone[0]:
            self._alone = None
            self._looks_at = 0.0
            self._wake.set()  # others of its kind may wait
        if not task.cancelled() and task.exception() is not None:
            logger.error("delivery task failed", exc_info=task.exception())

    async def _deliver(self, job: ClaimedJob, claimed_at: float) -> None:
        timeout = job.timeout_seconds or self._settings.http_timeout_seconds
        if time.monotonic() - claimed_at + timeout > self._settings.lease_seconds:
            await self._hand_back([job])  # the process was suspended: this POST could outlive its lease
            return
        result = await deliver.attempt(
            self._parts.sender, self._parts.box, job, timeout_seconds=self._settings.http_timeout_seconds
        )
        self._parts.writer.write(without_large_payload(result))

    async def _hand_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """Hand back these jobs, and those whose rows were locked the last time: they wait as if not claimed."""
        jobs, self._locked = [*self._locked, *jobs], []
        if not jobs:
            return
        try:
            self._locked += await self._session.run(
                lambda connection: deliver.hand_back_jobs(connection, jobs, worker_id=self._parts.worker_id)
            )
        except DatabaseUnavailable as error:
            logger.warning("jobs not handed back", extra={"jobs": len(jobs), "error": str(error)})

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self._parts.writer.let_go()
        self._places.freed.set()

    async def drain(self) -> None:
        """Wait at most SHUTDOWN_SECONDS for POSTs in flight, and hand back the rest."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=SHUTDOWN_SECONDS)
        rest = dict(self._in_flight)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.gather(*rest, return_exceptions=True)
            await self._hand_back(list(rest.values()))
        give_up_at = time.monotonic() + LOCKED_AT_STOP_SECONDS
        while self._locked and time.monotonic() < give_up_at:
            await asyncio.sleep(LOCKED_PAUSE_SECONDS)
            await self._hand_back([])

    async def close(self) -> None:
        await self._session.close()


def without_large_payload(result: AttemptResult) -> AttemptResult:
    """Return the result, without the payload of its job if that is large: it is not needed any more."""
    if len(result.job.payload) <= LARGE_PAYLOAD:
        return result
    return replace(result, job=replace(result.job, payload=""))
