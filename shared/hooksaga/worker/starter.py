"""Start and apply loops of polling mode: the orchestrator's two halves, and what one tells the other."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.errors import RowRefused
from hooksaga.core.outcomes import GONE
from hooksaga.core.saga import SagaStatus
from hooksaga.runtime.settings import Settings
from hooksaga.stages.apply_results import BATCH, apply_results
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.start_attempts import Started, start_attempts
from hooksaga.stages.telemetry import note_moves, note_refused
from hooksaga.stages.wakes import FIRST, seconds_until_next_wake, unapplied_results, waiting_subscriptions
from hooksaga.worker.loops import IDLE_SECONDS, POLL_SECONDS, rest
from hooksaga.worker.places import WorkerPlaces
from hooksaga.worker.refused_rows import RefusedRows
from hooksaga.worker.result_writer import GATHER_SECONDS, MANY
from hooksaga.worker.start_queue import StartQueue
from hooksaga.worker.wakes import Wakes

MIN_REST_SECONDS = 0.02
WALK_PAGE = 200
"""Subscriptions that one step of the walk looks at: all at start, then one page per poll."""


class Starter:
    """Starts attempts into room and applies results. `step`, `apply` and `walk` are the steps of three loops."""

    def __init__(
        self,
        settings: Settings,
        address: DatabaseAddress,
        wakes: Wakes,
        refused: RefusedRows,
        stopping: asyncio.Event,
        places: WorkerPlaces,
    ) -> None:
        self.queue = StartQueue()
        self._policy = settings.retry_policy
        self._most_ahead = settings.concurrency
        self._wakes = wakes
        self._refused = refused
        self._stopping = stopping
        self._places = places
        self._rests_ahead = False
        self._placeless: dict[int, None] = {}
        self._next_wake_at = 0.0
        self._refused_at = -POLL_SECONDS
        self._results: dict[int, None] = {}
        self._results_after: Sequence[int] = FIRST
        self._looks_for_results_at = 0.0
        self._looks_for_all = True
        self.walk_rest = POLL_SECONDS
        self._walks_all = True
        self._walk_after = 0
        self._starting, self._applying = (Session(address, Role.ORCHESTRATOR) for _ in range(2))

    async def step(self) -> bool:
        """Start what is due of the subscriptions in the queue, and of those whose time has come.

        No more is started than a lane may claim soon, so that newer deliveries wait for few others. A subscription
        without a place waits for one; the results of its attempts in progress have it looked at too.
        """
        self._rests_ahead = self._is_far_ahead
        if self._rests_ahead:
            return False
        ahead = self._most_ahead - self._places.quick.unclaimed
        taken = self.queue.take(min(BATCH, ahead))
        has_place = {one: self._places.any_for(one) for one in taken}
        ids = [one for one in taken if has_place[one]]
        self._placeless |= dict.fromkeys(one for one in taken if not has_place[one])
        is_due = not self.until_next_wake() and await self._is_any_due()
        if not ids and not is_due:
            return False
        started = await self._start(ids, most_woken=min(BATCH, ahead) if is_due else 0)
        self._told_of_starts(started)
        if is_due or started.wake_at:
            await self._is_any_due()
        return bool(len(self.queue))

    def rest_seconds(self) -> float:
        """Return how long the starter may rest: until a subscription is due, or a lane has claimed what is ahead."""
        return POLL_SECONDS if self._is_far_ahead else self.until_next_wake()

    @property
    def _is_far_ahead(self) -> bool:
        return self._places.quick.unclaimed >= self._most_ahead

    async def _start(self, ids: Sequence[int], most_woken: int) -> Started:
        unit = partial(
            start_attempts,
            defaults=self._policy,
            subscription_ids=ids,
            most_woken=most_woken,
            places=self._places,
        )
        try:
            return await self._starting.run(unit)
        except RowRefused as refused:
            return Started(moves=self._told_of_refusal(refused))

    def _told_of_starts(self, started: Started) -> None:
        lanes = ((self._places.quick, self._wakes.quick), (self._places.slow, self._wakes.slow))
        for is_slow, (places, wake) in enumerate(lanes):
            jobs = {
                move.job_id: move.subscription_id
                for move in started.moves
                if move.job_id is not None and move.slow == is_slow
            }
            if jobs:
                places.start(jobs)
                wake.set()
        if started.moves:
            self.queue.put(started.again)
        elif started.again:  # locked by another session, or no place
            asyncio.get_running_loop().call_later(MIN_REST_SECONDS, self.look_at, started.again)
        self._told(started.moves)

    async def _is_any_due(self) -> bool:
        """Ask when the next subscription is to be looked at. Returns whether one is to be now."""
        pause = POLL_SECONDS
        self._next_wake_at = time.monotonic() + pause
        soonest = await self._starting.run(seconds_until_next_wake)
        if soonest is not None:
            pause = min(pause, max(MIN_REST_SECONDS, soonest))
        # The earlier of both: another look may have been requested meanwhile.
        self._next_wake_at = min(self._next_wake_at, time.monotonic() + pause)
        return soonest is not None and soonest <= 0

    def until_next_wake(self) -> float:
        """Return the seconds until a subscription is to be looked at, at most one poll: another process may add one."""
        return max(0.0, self._next_wake_at - time.monotonic())

    def look_at(self, subscription_ids: Sequence[int]) -> None:
        """Have the starter look at these subscriptions."""
        self.queue.put(subscription_ids)
        self._wakes.start.set()

    def look_when_next_is_due(self) -> None:
        """Shorten the wait when a subscription may have to be looked at sooner."""
        self._next_wake_at = 0.0
        self._wakes.start.set()

    def note_claimed(self) -> None:
        """Look on when the starter rests because it is far ahead of the lanes, or for subscriptions that had no place
        and hold none: no result of theirs will have them looked at."""
        found = [one for one in self._placeless if not self._places.holds(one)]
        for one in found:
            del self._placeless[one]
        self.queue.put(found)
        if found or (self._rests_ahead and not self._is_far_ahead):
            self._wakes.start.set()

    async def walk(self) -> bool:
        """Look at one page of the subscriptions with waiting sagas, whatever was forgotten. At start at all of them."""
        after = self._walk_after
        ids, last = await self._starting.run(
            lambda connection: waiting_subscriptions(connection, after=after, limit=WALK_PAGE)
        )
        self._walk_after = last or 0
        self.walk_rest = POLL_SECONDS if last or ids else IDLE_SECONDS
        self._walks_all = self._walks_all and last is not None
        if ids:
            self.look_at(ids)
        return self._walks_all

    def note_results(self, job_ids: Iterable[int]) -> None:
        """Have these results applied, which this process has written."""
        self._results |= dict.fromkeys(job_ids)
        self._wakes.apply.set()

    async def apply(self) -> bool:
        """Apply the results of this process, and from time to time of others and of lost leases. A subscription with
        more that is due is looked at again: a result makes room."""
        looks = not self._results or time.monotonic() >= self._looks_for_results_at
        if self._results:
            await self._apply(list(islice(self._results, BATCH)))
        if looks:
            await self._look_for_results()
        return bool(self._results) or self._looks_for_results_at == 0

    async def _apply(self, job_ids: Sequence[int]) -> None:
        left = dict[int, None]()
        unit = partial(apply_results, defaults=self._policy, job_ids=job_ids, on_left=left.setdefault)
        try:
            moves = await self._applying.run(unit)
        except RowRefused as refused:
            moves = self._told_of_refusal(refused)
        for one in job_ids:
            del self._results[one]
        self._results |= left
        self._told(moves)
        room = [
            one.subscription_id for one in moves if one.made_room or (one.has_due and self._has_no_place(one))
        ]
        if room:
            self.look_at(room)
        if any(move.status is SagaStatus.PENDING_RETRY for move in moves):
            self.look_when_next_is_due()
        if len(moves) >= MANY or left:
            await rest(self._stopping, GATHER_SECONDS)

    async def _look_for_results(self) -> None:
        """Look for results at one page of the sagas in progress, and at the next one at once after a page with some. At
        start at all pages."""
        found, after = await self._applying.run(partial(unapplied_results, after=self._results_after))
        self._results |= dict.fromkeys(found)
        self._results_after = after or FIRST
        self._looks_for_all = self._looks_for_all and after is not None
        goes_on = self._looks_for_all or (found and after)
        self._looks_for_results_at = 0.0 if goes_on else time.monotonic() + POLL_SECONDS

    def _has_no_place(self, move: SagaMoved) -> bool:
        return move.subscription_id in self._placeless

    def _told_of_refusal(self, refused: RowRefused) -> list[SagaMoved]:
        """A row that the database rejects is logged, and blocks neither the rest of its batch nor the next stage."""
        if not self._has_refused_row:
            self._refused_at = time.monotonic()
        note_refused(self._refused.new_of(refused.rows))
        return list(refused.done)

    @property
    def _has_refused_row(self) -> bool:
        """Return whether a row was rejected within one poll interval: such a row is retried no more often than that."""
        return time.monotonic() < self._refused_at + POLL_SECONDS

    def _told(self, moves: Sequence[SagaMoved]) -> None:
        note_moves(moves)
        if any(
            move.status is SagaStatus.DEAD_LETTERED or move.final_error_code == GONE or move.breaker_changed
            for move in moves
        ):
            self._wakes.watch.set()  # there may be subscribers to it, or the endpoint is due to be disabled

    async def close(self) -> None:
        for session in (self._starting, self._applying):
            await session.close()
