"""Events with so many subscriptions that others would wait behind them, and which of the others need not.

A hint and no more: it is of events that this process routed, and what it forgets is found by SQL in its turn.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from uuid import UUID

from hooksaga.stages.route_events import RoutedEvent

NARROW = 50
"""An event with no more sagas than this may overtake wide ones; all that lie between wait in their turn."""

BEHIND = 200
"""With fewer sagas of wide events routed and not begun, those of others are started soon enough in their turn."""

MOST_OVERTAKING = 2000
FORGOTTEN_SECONDS = 60.0
"""A wide event of which so long nothing has moved is another process's business, or waits for its receivers."""


class WideFanOuts:
    """An event is wide when it is routed in parts. Belongs to one event loop."""

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}
        self._moved_at: dict[UUID, float] = {}
        self._checked_at = 0.0
        self._overtaking: deque[int] = deque(maxlen=MOST_OVERTAKING)

    @property
    def under_way(self) -> bool:
        """Whether deliveries of a wide event have not begun yet."""
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
        """While there is much of a wide event to be started, the sagas of narrow ones may overtake it."""
        for event in events:
            if not event.whole or event.webhook_id in self._left:
                self._left[event.webhook_id] = self._left.get(event.webhook_id, 0) + len(event.saga_ids)
                self._moved_at[event.webhook_id] = time.monotonic()
        if self.under_way and sum(self._left.values()) > BEHIND:
            for event in events:
                if len(event.saga_ids) <= NARROW and event.webhook_id not in self._left:
                    self._overtaking.extend(event.saga_ids)

    def is_overtaken_by(self, webhook_id: UUID) -> bool:
        """Whether a wide event is under way, and this is none."""
        return self.under_way and webhook_id not in self._left

    def note_begun(self, webhook_ids: Iterable[UUID]) -> None:
        """A delivery of each of these events was begun, or ended before it could."""
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
        """Sagas that may overtake, the oldest first."""
        return [self._overtaking.popleft() for _ in range(min(most, len(self._overtaking)))]
