"""Delivery loop of polling mode: claims jobs, POSTs them concurrently, and writes results in batches meanwhile.

Fairness is in the places (places.py). Jobs whose workers died repeatedly are sent one at a time: one of them may be
what kills its workers.

Pace: a statement of a hundred rows costs little more than one of ten. So a lane with a backlog claims ahead, for each
subscription as many jobs as have just ended quickly, and polls again a moment later. A subscription that hangs or is
slow has no quick jobs, so none of its jobs are held. Results are gathered for a moment when many arrive. A single event
never waits.
"""

import asyncio
import contextlib
import time
from collections import Counter

from hooksaga.adapters.database import Session
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.deliver import Lane, ids_of_each
from hooksaga.stages.job_rows import ClaimedJob
from hooksaga.stages.telemetry import note_claimed
from hooksaga.worker import lane_turns
from hooksaga.worker.held_jobs import Claim, HeldJobs
from hooksaga.worker.lane_parts import Ended, HandBack, LaneParts, PassedBy, without_large_payload
from hooksaga.worker.lane_turns import Turns, has_backlog, left_some, room_of
from hooksaga.worker.payload_memory import PayloadMemory
from hooksaga.worker.places import Places, Pool, may_begin, places_to_overtake
from hooksaga.worker.result_writer import (
    GATHER_SECONDS,
)

IDS_PER_PLACE = 8
"""Ids read per job that can be claimed: enough when only a few of many subscriptions have a backlog."""

SHUTDOWN_SECONDS = 20
"""At shutdown, POSTs in flight may take this long to end; the remaining jobs are handed back."""

QUICK_MS = 250
"""A POST that took no longer lets another job of its subscription be held; it waits about as long as one POST."""

HELD_SECONDS = 2.0
"""A job held for longer is handed back: its subscription may have changed since."""

MOST_AT_ONCE = 2
"""POSTs that start, and so mostly end, in one turn of the event loop, which the API and the other loops share."""


class DeliveryLane:
    """One lane, first attempts or retries: finds waiting jobs by SQL, in turn by subscription."""

    def __init__(
        self, lane: Lane, pool: Pool, session: Session, wake: asyncio.Event, parts: LaneParts
    ) -> None:
        self._lane = lane
        self._pool = pool
        pool.told.append(self._begin_soon)
        self._session = session
        self._writer = parts.writer
        self._settings = parts.settings
        self._sender = parts.sender
        self._box = parts.box
        self._worker_id = parts.worker_id
        self._wide = parts.wide
        self._wake = wake
        self._in_flight: dict[asyncio.Task[None], ClaimedJob] = {}
        self._per_subscription: Counter[int] = Counter()
        self._held = HeldJobs()
        self._memory = PayloadMemory(parts.settings.payload_max_bytes)
        self._alone_from = deliver.alone_from_lost(self._settings.max_lost_leases)
        self._alone: Claim | None = None
        self._back = HandBack(session, parts.worker_id)
        self._passed_by = PassedBy()
        self._turns = Turns()
        self._beginning: asyncio.Handle | None = None
        self._ended = Ended()
        self._ran_dry = asyncio.Event()
        self._has_backlog = False
        self._left_some = False
        self._stopping = False

    async def step(self) -> bool:
        """Claim once and start the POSTs. Returns False when no other waiting job could be claimed."""
        await self._wait_for_place()
        if self._stopping:
            return False
        await self._hand_back_old()
        job_ids = await self._find()
        if not job_ids:
            self._begin_some(tries=len(self._held))
            return False
        claimed_at = time.monotonic()
        jobs = await self._session.run(
            lambda connection: deliver.claim_jobs(
                connection,
                job_ids,
                worker_id=self._worker_id,
                lease_seconds=self._settings.lease_seconds,
                alone_from=self._alone_from,
                one_alone=not self._sends_alone(),
            )
        )
        note_claimed(jobs)
        self._wide.note_begun(job.webhook_id for job in jobs)
        if self._stopping:
            await self._back.give(jobs)
            return False
        self._memory.take([len(job.payload) for job in jobs])
        chosen = {job_id: number for number, job_id in enumerate(job_ids)}
        for job in sorted(jobs, key=lambda job: chosen[job.id]):  # in the order in which places were assigned
            claim = Claim(job, claimed_at)
            self._held.put(claim)
            self._alone = claim if job.alone else self._alone
        self._begin_some(tries=len(self._held))
        if not self._sends_alone():  # otherwise the found jobs may wait for it to end
            self._passed_by.add(set(job_ids) - {job.id for job in jobs})
        if jobs:
            return self._left_some or len(jobs) < len(job_ids)
        if self._sends_alone():
            return False  # the found jobs may wait for it to end
        await asyncio.sleep(GATHER_SECONDS)  # another worker has claimed it, or a session has locked it
        return True

    def _sends_alone(self) -> bool:
        """Return whether a job that must be alone among its kind is in flight; never longer than its lease."""
        return (
            self._alone is not None
            and time.monotonic() < self._alone.claimed_at + self._settings.lease_seconds
        )

    async def _wait_for_place(self) -> None:
        """Wait for a place and for memory for another payload. With a backlog, first wait for GATHER_SECONDS, or until
        a place stays free because no job is held any more."""
        if self._has_backlog:
            self._ran_dry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GATHER_SECONDS):
                    await self._ran_dry.wait()
        if not self._stopping:
            await self._writer.until_room()
        while (self._free <= 0 or self._memory.is_full) and not self._stopping:
            self._pool.freed.clear()
            await self._pool.freed.wait()

    @property
    def _free(self) -> int:
        return min(self._places - len(self._in_flight), self._pool.free)

    @property
    def _places(self) -> int:
        """Number of places for this lane; during a wide fan-out some are left to the jobs that overtake it."""
        if self._lane is Lane.FIRST and self._wide.under_way:
            return max(1, self._pool.places - places_to_overtake(self._pool))
        return self._pool.places

    def _may_begin(self, subscription_id: int) -> bool:
        return may_begin(self._free, self._per_subscription[subscription_id])

    def _begin_some(self, tries: int) -> None:
        """Start held jobs that have a place, a few per turn of the event loop."""
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None
        for _ in range(MOST_AT_ONCE):
            if self._stopping or not self._begin_next(tries):
                self._ran_dry.set()
                return
        self._beginning = asyncio.get_running_loop().call_soon(self._begin_some, tries)

    def _begin_soon(self) -> None:
        """Schedule the start of held jobs after a place became free."""
        if not len(self._held):
            self._ran_dry.set()
        elif self._beginning is None:
            self._beginning = asyncio.get_running_loop().call_soon(self._begin_some, 2)

    def _begin_next(self, tries: int) -> bool:
        claim = self._held.take(self._may_begin, tries)
        if claim is not None:
            self._begin(claim)
        return claim is not None

    async def _find(self) -> list[int]:
        """Find the ids to claim. A poll starts after the subscription where the last one stopped, and goes round once,
        so subscriptions without room do not hide the ones behind them."""
        ended, self._ended = self._ended, Ended()
        began, has_turned = self._turns.look_after, False
        self._turns.somebody_had_no_room = False
        while not (job_ids := await self._look(ended)):
            at_end = self._turns.look_after == 0
            if at_end and began and not has_turned:
                has_turned = True
            elif at_end or (has_turned and self._turns.look_after >= began) or self._free <= len(self._held):
                break
        return job_ids

    async def _look(self, ended: Ended) -> list[int]:
        room, default_room = room_of(
            self._free, self._per_subscription, self._held.per_subscription(), ended.quick
        )
        most = max(1, min(self._free + ended.quick.total() - len(self._held), self._memory.room))
        most_ids = IDS_PER_PLACE * most
        taken = self._per_subscription + Counter(self._held.per_subscription())
        places = Places(self._free - len(self._held), taken, ended.quick)
        passed_by = self._passed_by.ids()
        waiting = await self._session.run(
            lambda connection: deliver.find_waiting_jobs(
                connection,
                self._lane,
                default_room=default_room,
                busy=room,
                after_subscription=self._turns.look_after,
                max_subscriptions=lane_turns.MOST_SUBSCRIPTIONS,
                most_ids=most_ids,
                passed_by=passed_by,
            )
        )
        share = ids_of_each(most_ids, len(waiting))
        room_of_ids = {key: min(share, many) for key, many in room.items()}
        self._has_backlog = has_backlog(waiting, room_of_ids, min(share, default_room), ended.answered)
        self._turns.somebody_had_no_room = self._turns.somebody_had_no_room or 0 in room.values()
        began = self._turns.look_after
        job_ids = self._turns.take(waiting, most, places)
        left = left_some(waiting, room_of_ids, min(share, default_room), len(job_ids))
        self._left_some = left or began > 0 or self._turns.look_after > 0  # not all subscriptions were read
        return job_ids

    def _begin(self, claim: Claim) -> None:
        task = asyncio.create_task(self._deliver(claim))
        self._in_flight[task] = claim.job
        self._pool.take()
        self._per_subscription[claim.job.subscription_id] += 1
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        job = self._in_flight.pop(task)
        subscription_id = job.subscription_id
        self._per_subscription[subscription_id] -= 1
        if not self._per_subscription[subscription_id]:
            del self._per_subscription[subscription_id]
        self._memory.give_back(len(job.payload))
        self._pool.give_back()
        if self._turns.somebody_had_no_room or job.alone:
            self._wake.set()
        if self._alone is not None and job is self._alone.job:
            self._alone = None
        if not task.cancelled() and task.exception() is not None:
            logger.error("delivery task failed", exc_info=task.exception())

    async def _deliver(self, claim: Claim) -> None:
        job, waited = claim.job, time.monotonic() - claim.claimed_at
        timeout = job.timeout_seconds or self._settings.http_timeout_seconds
        if waited > HELD_SECONDS or waited + timeout > self._settings.lease_seconds:
            await self._back.give([job])  # or the process was suspended: this POST could outlive its lease
            return
        result = await deliver.attempt(
            self._sender, self._box, job, timeout_seconds=self._settings.http_timeout_seconds
        )
        self._writer.write(without_large_payload(result))
        if result.outcome.response_status is not None:
            self._ended.answered.add(job.subscription_id)
        if result.outcome.duration_ms <= QUICK_MS:
            self._ended.quick[job.subscription_id] += 1

    async def _hand_back_old(self) -> None:
        """Hand back jobs held for too long: they reserve a place that others could use, while their subscription has
        none."""
        old = self._held.take_older(time.monotonic() - HELD_SECONDS)
        for job in old:
            self._memory.give_back(len(job.payload))
        await self._back.give(old)

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self._writer.let_go()
        self._ran_dry.set()
        self._pool.freed.set()

    async def drain(self) -> None:
        """Hand back held jobs, wait at most SHUTDOWN_SECONDS for POSTs in flight, and hand back the rest."""
        await self._back.give(self._held.take_all())
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=SHUTDOWN_SECONDS)
        rest = dict(self._in_flight)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.gather(*rest, return_exceptions=True)
            await self._back.give(list(rest.values()))
        await self._back.give_locked()

    async def close(self) -> None:
        await self._session.close()
