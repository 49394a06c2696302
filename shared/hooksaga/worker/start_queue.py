"""Subscriptions that the starter is to look at: hints from the other stages, each id once.

A hint that is lost costs time only: `wake_at` and the walk over waiting subscriptions find the same. An event with very
many subscriptions does not block others: its subscriptions wait in a queue of their own, which gets a share of each
call.
"""

from collections.abc import Iterable

NARROW = 50
"""Subscriptions of an event with more sagas are wide."""

WIDE_SHARE = 4
"""While both queues have entries, one subscription in this many is of a wide event."""


class StartQueue:
    """Two queues of subscription ids, first in first out. Belongs to one event loop."""

    def __init__(self) -> None:
        self._narrow: dict[int, None] = {}
        self._wide: dict[int, None] = {}
        self._taken = 0

    def __len__(self) -> int:
        return len(self._narrow) + len(self._wide)

    @property
    def wide(self) -> int:
        """Number of waiting subscriptions of wide events."""
        return len(self._wide)

    def put(self, subscription_ids: Iterable[int]) -> None:
        """Add these at the end, unless they wait already."""
        self._narrow |= dict.fromkeys(subscription_ids)

    def put_event(self, subscription_ids: list[int], *, whole: bool) -> None:
        """Add the subscriptions of a routed event, or of a part of one."""
        if whole and len(subscription_ids) <= NARROW:
            self.put(subscription_ids)
        else:
            self._wide |= dict.fromkeys(subscription_ids)

    def take(self, most: int) -> list[int]:
        """Take the next ones: of wide events what is left over, at least their share over several calls."""
        turns, self._taken = divmod(self._taken + most, WIDE_SHARE)
        share = min(len(self._wide), turns)
        narrow = _take(self._narrow, max(most - share, 0))
        return narrow + _take(self._wide, most - len(narrow))


def _take(ids: dict[int, None], most: int) -> list[int]:
    taken = list(ids)[:most] if len(ids) > most else list(ids)
    for one in taken:
        del ids[one]
    return taken
