"""Wide events, with so many subscriptions that others would wait behind them, and the sagas that may overtake them.

This is only a hint: it covers events that this process routed, and SQL finds forgotten ones in their turn.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from uuid import UUID

from hooksaga.stages.route_events import RoutedEvent

NARROW = 50
"""An event with at most this many sagas may overtake wide ones; events between narrow and wide wait in turn."""

BEHIND = 200
"""With fewer routed but unstarted sagas of wide events, the sagas of others are started soon enough in turn."""

MOST_OVERTAKING = 2000
FORGOTTEN_SECONDS = 60.0
"""A wide event without progress for this time is handled by another process, or waits for its receivers."""


class WideFanOuts:
    """Wide events in progress. An event is wide when it is routed in parts. Belongs to one event loop."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._moved_at: dict[UUID, float] = {}
        self._checked_at = 0.0
        self._overtaking: deque[int] = deque(maxlen=MOST_OVERTAKING)

    @property
    def under_way(self) -> bool:
        """Whether a wide event has deliveries that were not started yet."""
        if self._left and time.monotonic() > self._checked_at + FORGOTTEN_SECONDS:
            self._forget_what_stands_still()
        return bool(self._left)

    def _forget_what_stands_still(self) -> None:
        self._checked_at = time.monotonic()
        for webhook_id, moved_at in list(self._moved_at.items()):
            if moved_at < self._checked_at - FORGOTTEN_SECONDS:
                self._forget(webhook_id)

    def _forget(self, webhook_id: UUID) -> None:
        del self._left[webhook_id], self._moved_at[webhook_id]

    def note_routed(self, events: Sequence[RoutedEvent]) -> None:
        """Note routed events: while much of a wide event is to be started, the sagas of narrow ones may overtake it."""
        for event in events:
            if not event.whole or event.webhook_id in self._left:
                self._left[event.webhook_id] = self._left.get(event.webhook_id, 0) + len(event.saga_ids)
                self._moved_at[event.webhook_id] = time.monotonic()
        if self.under_way and sum(self._left.values()) > BEHIND:
            for event in events:
                if len(event.saga_ids) <= NARROW and event.webhook_id not in self._left:
                    self._overtaking.extend(event.saga_ids)

    def is_overtaken_by(self, webhook_id: UUID) -> bool:
        """Return whether a wide event is in progress and this event is not wide."""
        return self.under_way and webhook_id not in self._left

    def note_begun(self, webhook_ids: Iterable[UUID]) -> None:
        """Note that a delivery of each of these events was started, or ended before it could start."""
        if not self._left:
            return
        for webhook_id in webhook_ids:
            if webhook_id in self._left:
                self._moved_at[webhook_id] = time.monotonic()
                self._left[webhook_id] -= 1
                if not self._left[webhook_id]:
                    self._forget(webhook_id)

    @property
    def has_overtaking(self) -> bool:
        return bool(self._overtaking)

    def take_overtaking(self, most: int) -> list[int]:
        """Take the sagas that may overtake, oldest first."""
        return [self._overtaking.popleft() for _ in range(min(most, len(self._overtaking)))]
