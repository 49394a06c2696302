"""Places for POSTs in flight: how many there are, who may have one, and what may be claimed for them.

Fairness: a subscription may have at most as many places as stay free after it got them. One endpoint that hangs
has half of a lane at the most, two have a third each, and there is always room for the next one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

OVERTAKING_SHARE = 8
"""While a wide fan-out is under way, one place in this many belongs to what overtakes it."""


class Pool:
    """Places for POSTs in flight that lanes share. `freed` is set, and every lane is told, when one has become free."""

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
    """Of the places of first attempts."""
    return max(1, pool.places // OVERTAKING_SHARE)


def may_begin(free: int, taken: int) -> bool:
    """Whether a subscription with so many places may have one more of those that are free."""
    return free > 0 and (taken == 0 or free - taken >= 2)


class Places:
    """Who gets what while jobs are chosen: places as they will be taken, then what may be held ahead of them."""

    def __init__(self, free: int, taken: Mapping[int, int], ahead: Mapping[int, int]) -> None:
        self._free = free
        self._taken = Counter(taken)
        self._ahead = Counter(ahead)

    def take(self, subscription_id: int) -> bool:
        """Whether one more job of the subscription could begin, or be held: else it would wait for another's end."""
        if may_begin(self._free, self._taken[subscription_id]):
            self._free -= 1
        elif self._ahead[subscription_id] > 0:
            self._ahead[subscription_id] -= 1
        else:
            return False
        self._taken[subscription_id] += 1
        return True
