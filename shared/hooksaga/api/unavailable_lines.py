"""Log lines for 503 responses: at most one line a second per cause, with the number of responses that it covers.

While the database is unavailable, every call fails for the same reason. A line for each would fill the disk without new
information. A response with another reason has its own line.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

SECONDS = 1.0

Keys = Mapping[str, object]
Write = Callable[[Exception, Keys], None]


class UnavailableLine:
    """Log line of one cause. The first response is logged at once, those of the second after it together."""

    def __init__(self, write: Write, *, seconds: float = SECONDS) -> None:
        self._write = write
        self._seconds = seconds
        self._next_at = float("-inf")
        self._count = 0
        self._last: tuple[Exception, Keys] | None = None
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def note(self, error: Exception, keys: Keys) -> None:
        """Count one response. Its keys are logged if it is the last one before the line is written.

        Needs a running event loop, which writes the last line of a storm. The loop of a frozen function writes it when
        it runs again.
        """
        self._count += 1
        self._last = (error, keys)
        rest = self._next_at - time.monotonic()
        if rest <= 0:
            self._flush()
        else:
            self._flush_in(rest)

    def _flush_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer[0] is not loop:
            self._timer = loop, loop.call_later(seconds, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        if self._last is not None:
            error, keys = self._last
            count, self._count, self._last = self._count, 0, None
            self._next_at = time.monotonic() + self._seconds
            self._write(error, {**keys, "count": count})


class UnavailableLines:
    """One UnavailableLine for each cause: an error code, and the kind of error behind it."""

    def __init__(self, write: Write, *, seconds: float = SECONDS) -> None:
        self.write = write
        self._seconds = seconds
        self._of: dict[tuple[str, str], UnavailableLine] = {}

    def note(self, cause: tuple[str, str], error: Exception, keys: Keys) -> None:
        """Count one response with the cause. Needs a running event loop."""
        if cause not in self._of:
            self._of[cause] = UnavailableLine(self.write, seconds=self._seconds)
        self._of[cause].note(error, keys)
