"""Bulk operations: requeue many dead letters, resend many ended deliveries, or send old events to one subscription.

Each at a given rate.

    Running ◀──resume── Paused
    Running ──pause──▶ Paused
    Running | Paused ──stop──▶ Stopped
    Running ──nothing left──▶ Completed
    Running ──nearly all fail──▶ Stopped

An operation only starts sagas, which then behave as any other (see saga.py). A pause, a stop or a crash therefore
affects only sagas that are not started.
"""

from enum import StrEnum


class BulkKind(StrEnum):
    REQUEUE = "requeue"
    BACKFILL = "backfill"
    RESEND = "resend"


KIND_WORDS = (
    "`requeue`: start new sagas for dead letters. `backfill`: start the first saga of earlier events. "
    "`resend`: start a new saga for the newest delivery of each event that has ended."
)


class StopReason(StrEnum):
    """Why an operation stopped by itself."""

    FAILING = "failing"


class BulkStatus(StrEnum):
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    COMPLETED = "Completed"


BULK_MOVES: dict[BulkStatus, frozenset[BulkStatus]] = {
    BulkStatus.RUNNING: frozenset({BulkStatus.PAUSED, BulkStatus.STOPPED, BulkStatus.COMPLETED}),
    BulkStatus.PAUSED: frozenset({BulkStatus.RUNNING, BulkStatus.STOPPED}),
    BulkStatus.STOPPED: frozenset(),
    BulkStatus.COMPLETED: frozenset(),
}

MIN_RATE = 0.01
MAX_RATE = 1000.0
DEFAULT_RATE = 20.0
"""Sagas started per second, for all endpoints of the operation together."""
