"""What one call of start_attempts may start of each subscription, and what follows from what it has started."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from hooksaga.core.flow import FlowSettings, Room, after_start, next_start_at, room, tokens_left
from hooksaga.core.outcomes import ErrorCode
from hooksaga.stages.flow_rows import StartedRow, WaitingFlow

BATCH = 500
SOON = timedelta(seconds=1)
"""A saga that another session has locked, or that waits for an earlier event to be routed, is looked at again then."""


class Places:
    """Places for attempts in the process that sends them. This one has any number."""

    def is_late(self, subscription_id: int) -> bool:
        """Return whether an attempt in flight takes long, although the flow row does not say so yet."""
        return False

    def left_for(self, subscription_id: int, *, slow: bool) -> int:
        """Return how many more attempts of a subscription may start now, in the quick or in the slow lane."""
        return BATCH


ANY_NUMBER = Places()


class StartPlan:
    """What may start of one subscription, and then its flow afterwards and whether it is to be looked at again."""

    def __init__(
        self, row: WaitingFlow, settings: FlowSettings, endings_left: bool | None, share: int, places: Places
    ) -> None:
        self.row = row
        self.settings = settings
        self.before = self.flow = row.flow()
        self.room: Room = room(settings, self.flow, row.now)
        self.slow = row.is_slow(row.now) or places.is_late(row.subscription_id)
        self.starts = min(self.room.starts, share, places.left_for(row.subscription_id, slow=self.slow))
        self.again = bool(endings_left)
        self.may_start = (
            row.deliverable and self.room.starts > 0 and row.first_at is not None and not self.again
        )
        self.tokens = None if settings.rate_count is None else tokens_left(settings, self.flow, row.now)
        ending = row.ending()
        self.is_discarded = row.first_at is None or (
            ending is not None and ending.cause is ErrorCode.DISCARDED and endings_left is False
        )

    @property
    def has_rules(self) -> bool:
        return self.row.oldest_ordered_at is not None or self.room.probe or self.tokens is not None

    def finish(self, mine: Sequence[StartedRow], least_wait: timedelta) -> None:
        """Compute the flow after the starts of this subscription, and when it is to be looked at."""
        row, wake_at, order_cursor = self.row, self._closed_until(), self.before.order_cursor
        if self.may_start and not mine:  # another session has locked or changed its flow row
            self.again = True
            return
        if self.may_start:
            sagas = [one.saga_id for one in mine if one.saga_id is not None and one.job_id is not None]
            left = next(one for one in mine if one.saga_id is None)
            self.flow = after_start(self.settings, self.before, self.room, sagas, row.now)
            if self.flow != self.before:  # tokens and the probe are written by the start itself
                self.row, self.before = msgspec.structs.replace(row, version=row.version + 1), self.flow
            order_cursor = order_cursor if left.order_cursor is None else left.order_cursor
            wake_at = self._wake_at(left, len(mine) - 1)
        self.flow = msgspec.structs.replace(
            self.flow,
            wake_at=self._spaced(wake_at, least_wait),
            order_cursor=order_cursor,
            discard_through=0 if self.is_discarded else self.before.discard_through,
        )

    def _spaced(self, wake_at: datetime | None, least_wait: timedelta) -> datetime | None:
        """Return a time that is least_wait ahead, or the one that is planned already where that is not much later."""
        if wake_at is None or not least_wait:
            return wake_at
        wake_at, planned = max(wake_at, self.row.now + least_wait), self.row.wake_at
        is_soon_enough = planned is not None and self.row.now < planned < wake_at + least_wait
        return planned if is_soon_enough else wake_at

    def _closed_until(self) -> datetime | None:
        """Return when time opens the room of a subscription that has something waiting."""
        row = self.row
        if row.first_at is None or self.again:
            return None
        if not row.deliverable:
            return max(row.first_at, row.now + SOON)
        until = self.room.until
        return None if until is None else max(until, row.first_at)

    def _wake_at(self, left: StartedRow, started: int) -> datetime | None:
        size, due, now = left.size or 0, left.due or 0, self.row.now
        times = [left.next_due_at]
        if due > size or left.ordered_blocked or left.order_cursor is not None:
            opens_at = next_start_at(self.settings, self.flow, now)
            times.append(opens_at)
            is_cut = size == self.starts < self.room.starts
            more_keys = left.order_is_cut and started > 0
            self.again = self.again or (opens_at is None and (is_cut or more_keys))
        if left.ordered_blocked or left.order_is_cut or started < min(size, due):
            times.append(now + SOON)
        return min((at for at in times if at is not None), default=None)
