"""Retention: deletes sagas and jobs that ended long ago, batch by batch. Never open work, events or dead letters.

The database function `prune_finished` does the work, as the only role that may delete. This module calls it until
nothing or no time is left.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hooksaga.adapters.database import Connection, fetch_row
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import InvalidInput

BATCH = 5000
MIN_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a walk: the last finished job that it read."""

    finished_at: datetime
    job_id: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Number of deleted rows, or of matches in a dry run. before: later ended rows stay. place: None at the end."""

    sagas: int
    jobs: int
    before: datetime
    place: Place | None


@dataclass(frozen=True, slots=True)
class Pruning:
    """Options of a prune. Only rows that ended longer ago than older_than are deleted; none in a dry run.

    Raises InvalidInput when older_than is less than a day, so that a mistake cannot empty a running system.
    """

    older_than: timedelta
    dry_run: bool = False
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.older_than < MIN_AGE:
            raise InvalidInput(
                "invalid_field", "older_than: must be at least 1d", field="older_than", status=422
            )


@dataclass(frozen=True, slots=True)
class _BatchRow:
    sagas: int
    jobs: int
    before: datetime
    last_finished_at: datetime | None
    last_job_id: int | None


async def prune_batch(connection: Connection, wanted: Pruning, after: Place | None = None) -> Pruned:
    """Prune one batch in one transaction: reads `batch` finished jobs after the place, oldest first."""
    params = {
        "older_than": wanted.older_than,
        "limit": wanted.batch,
        "after_finished_at": after.finished_at if after else None,
        "after_job_id": after.job_id if after else 0,
        "dry_run": wanted.dry_run,
    }
    row = await fetch_row(connection, load_queries("prune")["prune_finished"], params, _BatchRow)
    assert row is not None
    place = None
    if row.last_finished_at is not None and row.last_job_id is not None:
        place = Place(row.last_finished_at, row.last_job_id)
    return Pruned(row.sagas, row.jobs, row.before, place)


async def prune(
    run_batch: Callable[[Place | None], Awaitable[Pruned]],
    after: Place | None = None,
    *,
    may_go_on: Callable[[Pruned], bool] = lambda _: True,
) -> Pruned:
    """Prune in batches until nothing is left, or may_go_on, called after each with the sum so far, returns False.

    A stopped or killed run can be started again: deleted rows are not read again.
    """
    done = await run_batch(after)
    while done.place is not None and may_go_on(done):
        one = await run_batch(done.place)
        done = replace(one, sagas=done.sagas + one.sagas, jobs=done.jobs + one.jobs)
    return done
