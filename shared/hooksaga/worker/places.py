"""Places of one process for POSTs in flight, and which subscriptions hold them.

Room limits each subscription; places are what the subscriptions of one process share. A subscription holds a place from
the start of an attempt, when its job waits to be claimed, until the POST has ended; the database needs some time longer
to learn of that end, so places are counted here and not from rows. No subscription may hold more than stay free, so
that the next one that has something due finds a place.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from hooksaga.core.flow import SLOW_SECONDS
from hooksaga.stages.start_plan import Places

MIN_SHARE = 16
"""A subscription may use one quick place in this many however few are free."""


class LanePlaces:
    """Places of one lane: the jobs that were started for it, and how many places each subscription holds."""

    def __init__(self, total: int, least: int = 1) -> None:
        """least: places that each subscription may hold however few are free."""
        self.total = total
        self.freed = asyncio.Event()
        self._least = least
        self._started: dict[int, int] = {}
        self._held: Counter[int] = Counter()

    @property
    def free(self) -> int:
        """Number of POSTs that could start now; negative when POSTs of the other lane continue here."""
        return self.total - (self._held.total() - self.unclaimed)

    @property
    def unclaimed(self) -> int:
        """Number of started jobs that wait to be claimed."""
        return len(self._started)

    def held_by(self, subscription_id: int) -> int:
        """Return how many places a subscription holds."""
        return self._held[subscription_id]

    def left_for(self, subscription_id: int) -> int:
        """Return how many more attempts of a subscription may start."""
        held = self.held_by(subscription_id)
        return max(0, (self.total - self._held.total() - held) // 2, self._least - held)

    def may_refill(self, subscription_id: int) -> bool:
        """Return whether a quarter of what a subscription may hold is free: a start of many attempts costs little more
        than one of a few."""
        left = self.left_for(subscription_id)
        return left > 0 and 4 * left >= self.held_by(subscription_id) + left

    def start(self, jobs: Mapping[int, int]) -> None:
        """Note jobs that were started, each with its subscription."""
        self._started |= jobs
        self._held.update(jobs.values())

    def next_jobs(self, most: int) -> list[int]:
        """Return the started jobs to claim next."""
        return list(islice(self._started, most))

    def claim(self, asked: Iterable[int], claimed: Mapping[int, int]) -> None:
        """Note claimed jobs, each with its subscription, including those of other processes.
        The rest of asked is not to be had."""
        for job_id in {*asked, *claimed}:
            if job_id in self._started:
                self._give_back(self._started.pop(job_id))
        self._held.update(claimed.values())

    def begin(self, subscription_id: int) -> None:
        """Note a POST that continues here."""
        self._held[subscription_id] += 1

    def end(self, subscription_id: int) -> None:
        """Note the end of a POST, or that it continues in the other lane. Sets `freed`."""
        self._give_back(subscription_id)
        self.freed.set()

    def _give_back(self, subscription_id: int) -> None:
        self._held[subscription_id] -= 1
        if not self._held[subscription_id]:
            del self._held[subscription_id]


class WorkerPlaces(Places):
    """Places of both lanes of one process."""

    def __init__(self, quick: int, slow: int) -> None:
        self.quick = LanePlaces(quick, max(1, (quick + slow) // MIN_SHARE))
        self.slow = LanePlaces(slow)
        self._late: dict[int, float] = {}

    def left_for(self, subscription_id: int, *, slow: bool) -> int:
        return (self.slow if slow else self.quick).left_for(subscription_id)

    def any_for(self, subscription_id: int) -> bool:
        """Return whether an attempt of this subscription may start now, in a lane where it holds places already."""
        lanes = [lane for lane in (self.quick, self.slow) if lane.held_by(subscription_id)]
        return not lanes or any(lane.may_refill(subscription_id) for lane in lanes)

    def holds(self, subscription_id: int) -> bool:
        """Return whether attempts of this subscription hold places."""
        return bool(self.quick.held_by(subscription_id) or self.slow.held_by(subscription_id))

    def is_late(self, subscription_id: int) -> bool:
        """Return whether a POST of this subscription took long: until it ends, the flow row does not say so."""
        return self._late.get(subscription_id, 0.0) > time.monotonic()

    def note_late(self, subscription_id: int) -> None:
        """Note that a POST of this subscription takes long."""
        now = time.monotonic()
        self._late = {one: until for one, until in self._late.items() if until > now}
        self._late[subscription_id] = now + SLOW_SECONDS
