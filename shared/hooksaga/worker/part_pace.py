"""Pace of events with very many subscriptions while other events arrive: each starts HOOKSAGA_FAN_OUT_RATE deliveries
a second. All later stages follow the router, so this is the pace of the whole fan-out.
"""

import time
from collections.abc import Sequence

from hooksaga.stages.route_events import PART_SIZE, RoutedEvent

PAUSE_SECONDS = 0.05
"""Pause between two parts of an event."""

ALONE_SECONDS = 1.0
"""When no other event has arrived for so long, parts are not paced."""


class PartPace:
    """Pace of the parts of wide events. Belongs to one event loop."""

    def __init__(self, per_second: float) -> None:
        self._part_size = max(1, round(per_second * PAUSE_SECONDS))
        self._next_at: float | None = None
        self._others_at = float("-inf")

    @property
    def part_size(self) -> int:
        """Number of subscriptions of an event that are routed at once."""
        return self._part_size if self._others_come() else PART_SIZE

    def may_go_on(self) -> bool:
        """Return whether partly routed events may continue now."""
        return not (self._others_come() and self.until_next_part())

    def until_next_part(self) -> float | None:
        """Return the seconds until the next part; None when no event is known to be partly routed."""
        return None if self._next_at is None else max(0.0, self._next_at - time.monotonic())

    def note_routed(self, events: Sequence[RoutedEvent], *, went_on: bool) -> None:
        """Note the result of a routing statement. went_on: it included partly routed events."""
        now = time.monotonic()
        if any(event.whole for event in events):
            self._others_at = now
        if any(not event.whole for event in events):
            self._next_at = now + PAUSE_SECONDS if self._others_come() else now
        elif went_on:
            self._next_at = None

    def _others_come(self) -> bool:
        return time.monotonic() < self._others_at + ALONE_SECONDS
