"""Places of one process for POSTs in flight, and which subscriptions hold them.

Room limits each subscription; places are what the subscriptions of one process share. A subscription holds a place from
the start of an attempt, when its job waits to be claimed, until the POST has ended; the database needs some time longer
to learn of that end, so places are counted here and not from rows. No subscription may hold more than stay free, so
that the next one that has something due finds a place.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from hooksaga.core.flow import SLOW_SECONDS
from hooksaga.stages.start_attempts import Places

LEAST_SHARE = 16
"""A subscription may use one quick place in this many however few are free."""


class LanePlaces:
    """Places of one lane, with the jobs that were started for it and the POSTs in flight, by subscription."""

    def __init__(self, total: int, least: int = 1) -> None:
        """least: places that each subscription may hold however few are free."""
        self.total = total
        self.freed = asyncio.Event()
        self._least = least
        self._started: Counter[int] = Counter()
        self._in_flight: Counter[int] = Counter()

    @property
    def free(self) -> int:
        """Number of POSTs that could start now; negative when POSTs of the other lane continue here."""
        return self.total - self._in_flight.total()

    @property
    def unclaimed(self) -> int:
        """Number of started jobs that wait to be claimed."""
        return self._started.total()

    def held_by(self, subscription_id: int) -> int:
        """Return how many places a subscription holds."""
        return self._in_flight[subscription_id] + self._started[subscription_id]

    def left_for(self, subscription_id: int) -> int:
        """Return how many more attempts of a subscription may start."""
        held = self.held_by(subscription_id)
        return max(0, (self.free - self.unclaimed - held) // 2, self._least - held)

    def start(self, subscription_ids: Iterable[int]) -> None:
        """Note jobs that were started."""
        self._started.update(subscription_ids)

    def claim(self, subscription_ids: Iterable[int], *, is_empty: bool) -> None:
        """Note claimed jobs, maybe of another process. is_empty: no others wait."""
        self._started = Counter() if is_empty else self._started - Counter(subscription_ids)

    def begin(self, subscription_id: int) -> None:
        """Note a POST that begins, or that continues here."""
        self._in_flight[subscription_id] += 1

    def end(self, subscription_id: int) -> None:
        """Note the end of a POST, or that it continues in the other lane. Sets `freed`."""
        self._in_flight[subscription_id] -= 1
        if not self._in_flight[subscription_id]:
            del self._in_flight[subscription_id]
        self.freed.set()


class WorkerPlaces(Places):
    """Places of both lanes of one process."""

    def __init__(self, quick: int, slow: int) -> None:
        self.quick = LanePlaces(quick, max(1, (quick + slow) // LEAST_SHARE))
        self.slow = LanePlaces(slow)
        self._late: dict[int, float] = {}

    def left_for(self, subscription_id: int, *, slow: bool) -> int:
        return (self.slow if slow else self.quick).left_for(subscription_id)

    def any_for(self, subscription_id: int) -> bool:
        """Return whether an attempt of this subscription may start now, in a lane where it holds places already."""
        lanes = [lane for lane in (self.quick, self.slow) if lane.held_by(subscription_id)]
        return not lanes or any(lane.left_for(subscription_id) for lane in lanes)

    def is_late(self, subscription_id: int) -> bool:
        """Return whether a POST of this subscription took long: until it ends, the flow row does not say so."""
        return self._late.get(subscription_id, 0.0) > time.monotonic()

    def note_late(self, subscription_id: int) -> None:
        """Note that a POST of this subscription takes long."""
        now = time.monotonic()
        self._late = {one: until for one, until in self._late.items() if until > now}
        self._late[subscription_id] = now + SLOW_SECONDS
