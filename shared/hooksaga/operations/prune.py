"""Retention: deletes what ended long ago, batch by batch. Never open work, events or dead letters.

The whole of it is `prune_finished` in the database, which runs as the only role that may delete; here it is called
until there is nothing left, or no time.
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
    """How far a walk has come: the last finished job that it looked at."""

    finished_at: datetime
    job_id: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Number of deleted rows, or of matches in a dry run. before: what ended after it stays. place: None at the end."""

    sagas: int
    jobs: int
    before: datetime
    place: Place | None


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is wanted. Only what ended longer ago than older_than goes; nothing goes in a dry run.

    Raises InvalidInput when that is less than a day: nobody wipes a running system by mistake.
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
    """One transaction. Looks at `batch` finished jobs after that place, oldest first."""
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
    """Batch after batch until nothing is left, or may_go_on, asked after each with the sum so far, says no.

    Stopped or killed anywhere it can be begun anew: what is gone is not met again.
    """
    done = await run_batch(after)
    while done.place is not None and may_go_on(done):
        one = await run_batch(done.place)
        done = replace(one, sagas=done.sagas + one.sagas, jobs=done.jobs + one.jobs)
    return done
