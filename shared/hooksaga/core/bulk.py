"""Bulk operations: many dead letters requeued, or many old events sent to one subscription, at a steady rate.

    Running ◀──resume── Paused
    Running ──pause──▶ Paused
    Running | Paused ──stop──▶ Stopped
    Running ──nothing left──▶ Completed

An operation only starts sagas; each of them then lives as any other does (see saga.py). So what was started stays
started: a pause, a stop or a crash holds back the rest and takes nothing back.
"""

from enum import StrEnum


class BulkKind(StrEnum):
    REQUEUE = "requeue"
    BACKFILL = "backfill"


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

LEAST_RATE = 0.01
MOST_RATE = 1000.0
DEFAULT_RATE = 20.0
"""Sagas started per second, all endpoints of the operation together."""
