"""Order in which a lane claims waiting jobs: one per subscription in turn."""

import itertools
from collections.abc import Mapping, Sequence, Set

from hooksaga.stages.job_rows import WaitingJobs
from hooksaga.worker.places import Places

MOST_SUBSCRIPTIONS = 100
"""A poll for waiting jobs ends after this many subscriptions; the next one continues after them."""


def has_backlog(
    waiting: Sequence[WaitingJobs], room: Mapping[int, int], default_room: int, answered: Set[int]
) -> bool:
    """Return whether a subscription that answered since the last poll fills its room.

    A subscription that never answers always fills its room: if that counted, every claim of the others would wait.
    """
    return any(
        len(row.ids or ()) == room.get(row.subscription_id, default_room) > 0
        for row in waiting
        if row.subscription_id in answered
    )


def left_some(
    waiting: Sequence[WaitingJobs], room: Mapping[int, int], default_room: int, chosen: int
) -> bool:
    """Return whether more jobs may wait than were chosen: a subscription that filled its room may have more."""
    many = {row.subscription_id: len(row.ids or ()) for row in waiting}
    return chosen < sum(many.values()) or any(
        ids >= room.get(subscription_id, default_room) for subscription_id, ids in many.items()
    )


def room_of(
    free: int, in_flight: Mapping[int, int], held: Mapping[int, int], quick: Mapping[int, int]
) -> tuple[dict[int, int], int]:
    """Return how many jobs to claim for each subscription with jobs here, and for every other subscription."""
    room = {
        key: max(0, max(0, free - in_flight.get(key, 0)) // 2 + quick.get(key, 0) - held.get(key, 0))
        for key in {*in_flight, *held, *quick}
    }
    return room, max(1, free // 2)


class Turns:
    """Start of the next poll, and the next subscription in turn.

    look_after: the poll starts after this subscription id; 0: at the first. somebody_had_no_room: since its last reset.
    """

    def __init__(self) -> None:
        self.look_after = 0
        self.somebody_had_no_room = False
        self._last_served = 0

    def take(self, waiting: Sequence[WaitingJobs], most: int, places: Places) -> list[int]:
        """Choose one job of each subscription, then a second of each, and so on. The next round starts after the last
        subscription that got a place, so that a short round never favours low ids. If all waiting subscriptions were
        read, the round starts there; otherwise the next poll reads on from there."""
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
                    self.somebody_had_no_room = True
            if not in_turn or len(chosen) == most:
                break
        if chosen and not (saw_all and len(waiting) <= most):
            self.look_after = self._last_served
        else:
            self.look_after = 0 if saw_all else max(row.subscription_id for row in waiting)
        return chosen
