"""Retention: which kinds of rows are kept for how long, and how fast old ones are deleted. No I/O, no clock."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

MIN_AGE = timedelta(days=1)
"""No row that ended more recently is deleted, so that a mistake cannot empty a running system."""

MAX_BATCH = 5000
SMALLEST_BATCH = 100
BATCH_SECONDS = 0.25
"""Duration of a batch at which it keeps its size: for so long it holds its row locks."""

RESTS_PER_BATCH = 4.0
"""Retention rests this many times as long as its last batch took: on a busy database batches take longer, so it deletes
less there, and it never takes more than a fifth of one connection's time."""
MIN_REST = 0.05
MAX_REST = 30.0

IDLE_SECONDS = 60.0
"""Rest after a walk through all kinds, and while another process deletes."""


class RetentionKind(StrEnum):
    """Kinds of rows with an age of their own, in the order in which they are deleted."""

    DELIVERIES = "deliveries"
    DEAD_LETTERS = "dead_letters"
    PAYLOADS = "payloads"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long each kind of row is kept after its end; None: for ever."""

    deliveries: timedelta | None = None
    dead_letters: timedelta | None = None
    payloads: timedelta | None = None
    events: timedelta | None = None

    def age_of(self, kind: RetentionKind) -> timedelta | None:
        ages = {
            RetentionKind.DELIVERIES: self.deliveries,
            RetentionKind.DEAD_LETTERS: self.dead_letters,
            RetentionKind.PAYLOADS: self.payloads,
            RetentionKind.EVENTS: self.events,
        }
        return ages[kind]

    @property
    def kinds(self) -> list[RetentionKind]:
        """The kinds of rows that are deleted, in order."""
        return [kind for kind in RetentionKind if self.age_of(kind) is not None]


@dataclass(frozen=True, slots=True)
class Pace:
    """Size of the next batch, and the rest before it."""

    batch: int = 1000
    rest_seconds: float = 0.0

    def after(self, batch_seconds: float) -> "Pace":
        """Return the pace after a batch that took so long: a slow one halves the next, a quick one lets it grow."""
        rest = min(MAX_REST, max(MIN_REST, RESTS_PER_BATCH * batch_seconds))
        if batch_seconds > BATCH_SECONDS:
            return Pace(max(SMALLEST_BATCH, self.batch // 2), rest)
        return Pace(min(MAX_BATCH, self.batch + self.batch // 8), rest)
