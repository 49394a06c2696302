"""The delivery loop of polling mode: claims jobs, POSTs them side by side, and writes results in batches meanwhile.

Fairness is in the places (places.py). Jobs whose workers died again and again are sent one at a time: one of them may
be what they die of.

Pace: a statement of a hundred rows costs little more than one of ten. So a lane with a backlog claims ahead, of each
subscription as many as have just ended quickly, and looks again a moment later: one that hangs or is slow has none,
and nothing of it is held. Results wait a moment for each other where they come in numbers. A single event never waits.
"""

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from msgspec.structs import replace

from hooksaga.adapters.database import Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.deliver import AttemptResult, ClaimedJob, Lane, WaitingJobs, ids_of_each
from hooksaga.stages.telemetry import note_claimed
from hooksaga.worker.held_jobs import Claim, HeldJobs
from hooksaga.worker.payload_memory import PayloadMemory
from hooksaga.worker.places import Places, Pool, may_begin, places_to_overtake
from hooksaga.worker.result_writer import (
    GATHER_SECONDS,
    LOCKED_AT_STOP_SECONDS,
    LOCKED_PAUSE_SECONDS,
    ResultWriter,
)
from hooksaga.worker.wide_fan_outs import WideFanOuts

SHUTDOWN_SECONDS = 20
"""At shutdown, what is in flight may take this long to end; the rest is handed back."""

QUICK_MS = 250
"""A POST that took no longer lets another of its subscription be held: what is held waits about as long as one POST."""

HELD_SECONDS = 2.0
"""A job that was held for longer is handed back: its subscription may have changed since."""

MOST_AT_ONCE = 2
"""POSTs that begin, and so mostly end, in one turn of the event loop: the API and the other loops are in it too."""

IDS_PER_PLACE = 8
"""So many times what can be claimed is looked at: enough where only a few of many subscriptions have a backlog."""

LARGE_PAYLOAD = 4096

PASSED_BY_SECONDS = 1.0
"""For so long a job that could not be claimed is left out of the looks, so that its place goes to the next one of its
subscription: it is another's by now, or somebody has locked its row."""

MOST_PASSED_BY = 1000

MOST_SUBSCRIPTIONS = 100
"""A look for waiting jobs ends after so many subscriptions; the next one goes on behind them."""


def has_backlog(
    waiting: Sequence[WaitingJobs], room: Mapping[int, int], default_room: int, answered: Set[int]
) -> bool:
    """Whether a subscription that answered since the last look fills the room that it has.

    One that never answers always fills its room: if that counted, every claim of the others would wait for it.
    """
    return any(
        len(row.ids or ()) == room.get(row.subscription_id, default_room) > 0
        for row in waiting
        if row.subscription_id in answered
    )


def left_some(
    waiting: Sequence[WaitingJobs], room: Mapping[int, int], default_room: int, chosen: int
) -> bool:
    """Whether more may wait than was chosen: who filled the room that it was given may have more."""
    many = {row.subscription_id: len(row.ids or ()) for row in waiting}
    return chosen < sum(many.values()) or any(
        ids >= room.get(subscription_id, default_room) for subscription_id, ids in many.items()
    )


def without_large_payload(result: AttemptResult) -> AttemptResult:
    """It need not be kept until the result is written."""
    if len(result.job.payload) <= LARGE_PAYLOAD:
        return result
    return replace(result, job=replace(result.job, payload=""))


@dataclass(frozen=True, slots=True)
class LaneParts:
    """What the lanes of one process have in common."""

    writer: ResultWriter
    settings: Settings
    sender: HttpSender
    box: SecretBox
    worker_id: str
    wide: WideFanOuts


@dataclass(frozen=True, slots=True)
class Ended:
    """Of POSTs since the last look: how many of each subscription were quick, and which subscriptions answered."""

    quick: Counter[int] = field(default_factory=Counter)
    answered: set[int] = field(default_factory=set)


class DeliveryLane:
    """First attempts or retries: finds what waits by SQL, in turn by subscription."""

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
        self._locked: list[ClaimedJob] = []
        self._passed_by: dict[int, float] = {}
        self._beginning: asyncio.Handle | None = None
        self._ended = Ended()
        self._ran_dry = asyncio.Event()
        self._has_backlog = False
        self._left_some = False
        self._somebody_had_no_room = False
        self._last_served = 0
        self._look_after = 0
        self._stopping = False

    async def step(self) -> bool:
        """Claim once and begin the POSTs. False when nothing else was waiting that could be claimed."""
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
            await self._hand_back(jobs)
            return False
        self._memory.take([len(job.payload) for job in jobs])
        chosen = {job_id: number for number, job_id in enumerate(job_ids)}
        for job in sorted(jobs, key=lambda job: chosen[job.id]):  # as places were given out for them
            claim = Claim(job, claimed_at)
            self._held.put(claim)
            self._alone = claim if job.alone else self._alone
        self._begin_some(tries=len(self._held))
        if not self._sends_alone():  # else what was found may wait for its end
            self._pass_by(set(job_ids) - {job.id for job in jobs})
        if jobs:
            return self._left_some or len(jobs) < len(job_ids)
        if self._sends_alone():
            return False  # what was found may wait for its end
        await asyncio.sleep(GATHER_SECONDS)  # it is another's by now, or is locked by somebody
        return True

    def _sends_alone(self) -> bool:
        """Whether a job is under way that has to be alone among its like; never longer than its lease."""
        return (
            self._alone is not None
            and time.monotonic() < self._alone.claimed_at + self._settings.lease_seconds
        )

    async def _wait_for_place(self) -> None:
        """With a backlog for some time, or until a place stays free because nothing is held any more; and until
        there is a place, and memory for another payload."""
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
        """How many this lane may take; while a wide fan-out is under way some are left to what overtakes it."""
        if self._lane is Lane.FIRST and self._wide.under_way:
            return max(1, self._pool.places - places_to_overtake(self._pool))
        return self._pool.places

    def _may_begin(self, subscription_id: int) -> bool:
        return may_begin(self._free, self._per_subscription[subscription_id])

    def _begin_some(self, tries: int) -> None:
        """What is held and has a place, a few in each turn of the event loop."""
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None
        for _ in range(MOST_AT_ONCE):
            if self._stopping or not self._begin_next(tries):
                self._ran_dry.set()
                return
        self._beginning = asyncio.get_running_loop().call_soon(self._begin_some, tries)

    def _begin_soon(self) -> None:
        """A place has become free."""
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
        """Ids to claim. Looks begin behind the subscription where the last one broke off, and go round once: those
        that have no room hide nobody behind them."""
        ended, self._ended = self._ended, Ended()
        began, has_turned = self._look_after, False
        self._somebody_had_no_room = False
        while not (job_ids := await self._look(ended)):
            at_end = self._look_after == 0
            if at_end and began and not has_turned:
                has_turned = True
            elif at_end or (has_turned and self._look_after >= began) or self._free <= len(self._held):
                break
        return job_ids

    async def _look(self, ended: Ended) -> list[int]:
        room, default_room = self._room(ended.quick)
        most = max(1, min(self._free + ended.quick.total() - len(self._held), self._memory.room))
        most_ids = IDS_PER_PLACE * most
        taken = self._per_subscription + Counter(self._held.per_subscription())
        places = Places(self._free - len(self._held), taken, ended.quick)
        passed_by = self._still_passed_by()
        waiting = await self._session.run(
            lambda connection: deliver.find_waiting_jobs(
                connection,
                self._lane,
                default_room=default_room,
                busy=room,
                after_subscription=self._look_after,
                max_subscriptions=MOST_SUBSCRIPTIONS,
                most_ids=most_ids,
                passed_by=passed_by,
            )
        )
        share = ids_of_each(most_ids, len(waiting))
        room_of_ids = {key: min(share, many) for key, many in room.items()}
        self._has_backlog = has_backlog(waiting, room_of_ids, min(share, default_room), ended.answered)
        self._somebody_had_no_room = self._somebody_had_no_room or 0 in room.values()
        began = self._look_after
        job_ids = self._take_in_turn(waiting, most, places)
        left = left_some(waiting, room_of_ids, min(share, default_room), len(job_ids))
        self._left_some = left or began > 0 or self._look_after > 0  # not everybody was looked at
        return job_ids

    def _pass_by(self, job_ids: Set[int]) -> None:
        until = time.monotonic() + PASSED_BY_SECONDS
        self._passed_by |= dict.fromkeys(job_ids, until)
        for job_id in list(self._passed_by)[:-MOST_PASSED_BY]:
            del self._passed_by[job_id]

    def _still_passed_by(self) -> list[int]:
        now = time.monotonic()
        self._passed_by = {job_id: until for job_id, until in self._passed_by.items() if now < until}
        return list(self._passed_by)

    def _room(self, quick: Counter[int]) -> tuple[dict[int, int], int]:
        """How many to claim of each subscription that has any here, and of every other."""
        free, held = self._free, self._held.per_subscription()
        room = {
            key: max(0, max(0, free - self._per_subscription[key]) // 2 + quick[key] - held.get(key, 0))
            for key in {*self._per_subscription, *held, *quick}
        }
        return room, max(1, free // 2)

    def _take_in_turn(self, waiting: Sequence[WaitingJobs], most: int, places: Places) -> list[int]:
        """One job of each subscription, then a second of each, and so on. The next round begins behind the last
        subscription that got a place, so that a short round never favours low ids: where all were seen by beginning
        there, else by looking on from there."""
        chosen: list[int] = []
        saw_all = len(waiting) < MOST_SUBSCRIPTIONS
        turn = sorted(waiting, key=lambda row: saw_all and row.subscription_id <= self._last_served)
        for number in itertools.count():
            in_turn = [
                (row.subscription_id, row.ids[number]) for row in turn if row.ids and number < len(row.ids)
            ]
            for subscription_id, job_id in in_turn:
                if len(chosen) == most:
                    break
                if places.take(subscription_id):
                    chosen.append(job_id)
                    self._last_served = subscription_id
                else:
                    self._somebody_had_no_room = True
            if not in_turn or len(chosen) == most:
                break
        if chosen and not (saw_all and len(waiting) <= most):
            self._look_after = self._last_served
        else:
            self._look_after = 0 if saw_all else max(row.subscription_id for row in waiting)
        return chosen

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
        if self._somebody_had_no_room or job.alone:
            self._wake.set()
        if self._alone is not None and job is self._alone.job:
            self._alone = None
        if not task.cancelled() and task.exception() is not None:
            logger.error("delivery task failed", exc_info=task.exception())

    async def _deliver(self, claim: Claim) -> None:
        job, waited = claim.job, time.monotonic() - claim.claimed_at
        timeout = job.timeout_seconds or self._settings.http_timeout_seconds
        if waited > HELD_SECONDS or waited + timeout > self._settings.lease_seconds:
            await self._hand_back([job])  # or the process slept: this POST could outlive its lease
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
        """What is held keeps a place from others, although it may not begin where its subscription has none."""
        old = self._held.take_older(time.monotonic() - HELD_SECONDS)
        for job in old:
            self._memory.give_back(len(job.payload))
        await self._hand_back(old)

    async def _hand_back(self, jobs: Sequence[ClaimedJob]) -> None:
        """And those that were locked by somebody the last time."""
        jobs, self._locked = [*self._locked, *jobs], []
        if not jobs:
            return
        try:
            self._locked += await self._session.run(
                lambda connection: deliver.hand_back_jobs(connection, jobs, worker_id=self._worker_id)
            )
        except DatabaseUnavailable as error:
            logger.warning("jobs not handed back", extra={"jobs": len(jobs), "error": str(error)})

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self._writer.let_go()
        self._ran_dry.set()
        self._pool.freed.set()

    async def drain(self) -> None:
        """Hand back what is held, let what is in flight end, for at most SHUTDOWN_SECONDS, and hand back the rest."""
        await self._hand_back(self._held.take_all())
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
