"""Places for POSTs in flight: their number, which subscription may use one, and which jobs may be claimed for them.

Fairness: a subscription may use at most as many places as stay free afterwards. One endpoint that hangs uses at most
half of a lane, two use a third each, and there is always room for the next one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

OVERTAKING_SHARE = 8
"""During a wide fan-out, one place in this many belongs to jobs that overtake it."""


class Pool:
    """Places for POSTs in flight that lanes share. When one becomes free, `freed` is set and every lane is notified."""

    def __init__(self, places: int) -> None:
        self.free = self.places = places
        self.freed = asyncio.Event()
        self.told: list[Callable[[], None]] = []

    def take(self) -> None:
        self.free -= 1

    def give_back(self) -> None:
        self.free += 1
        self.freed.set()
        for tell in self.told:
            tell()


def places_to_overtake(pool: Pool) -> int:
    """Return how many of the places of first attempts are kept for overtaking jobs."""
    return max(1, pool.places // OVERTAKING_SHARE)


def may_begin(free: int, taken: int) -> bool:
    """Return whether a subscription that uses so many places may use one more of the free ones."""
    return free > 0 and (taken == 0 or free - taken >= 2)


class Places:
    """Assignment while jobs are chosen: first the places as they will be used, then the jobs that may be held ahead."""

    def __init__(self, free: int, taken: Mapping[int, int], ahead: Mapping[int, int]) -> None:
        self._free = free
        self._taken = Counter(taken)
        self._ahead = Counter(ahead)

    def take(self, subscription_id: int) -> bool:
        """Take one more job of the subscription if it can start or be held; otherwise it would wait for another job."""
        if may_begin(self._free, self._taken[subscription_id]):
            self._free -= 1
        elif self._ahead[subscription_id] > 0:
            self._ahead[subscription_id] -= 1
        else:
            return False
        self._taken[subscription_id] += 1
        return True
