"""Rejected rows that were already logged: each is retried every second, and one line an hour is enough."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hooksaga.core.errors import RefusedRow

AGAIN_SECONDS = 3600.0


class RefusedRows:
    """Rows that the database rejected, as one process sees them. A row is new at first, and again after an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told_at: dict[RefusedRow, float] = {}

    def new_of(self, rows: Sequence[RefusedRow]) -> list[RefusedRow]:
        """Return the rows to log now. A row rejected for another reason than before is the same row."""
        now = self._clock()
        self._told_at = {row: at for row, at in self._told_at.items() if now < at + AGAIN_SECONDS}
        new: list[RefusedRow] = []
        for row in rows:
            ids = replace(row, reason="")
            if ids not in self._told_at:
                self._told_at[ids] = now
                new.append(row)
        return new
