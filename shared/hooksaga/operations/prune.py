"""Retention: deletes what ended long ago, kind by kind, batch by batch. Never open work, or what something refers to.

Functions of the database do the work, as the only role that may delete (sql/functions/prune_*.sql). This module calls
them until nothing or no time is left. A stopped or killed run can be started again: each batch is one transaction.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import DatabaseUnavailable, InvalidInput
from hooksaga.core.retention import (
    BATCH_SECONDS,
    IDLE_SECONDS,
    MAX_BATCH,
    MIN_AGE,
    Pace,
    RetentionKind,
    RetentionPolicy,
)

BATCH = MAX_BATCH
BLOCKED_SECONDS = 0.2
"""Wait before a batch that could not begin is tried again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a walk: the last row that it read."""

    at: datetime
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Numbers of deleted rows, or of matches in a dry run. payloads: removed from events that stay."""

    sagas: int = 0
    jobs: int = 0
    dead_letters: int = 0
    payloads: int = 0
    events: int = 0

    def counts(self) -> dict[str, int]:
        return {one.name: getattr(self, one.name) for one in fields(Deleted)}

    @property
    def rows(self) -> int:
        return sum(self.counts().values())

    def plus(self, other: "Deleted") -> "Deleted":
        more = other.counts()
        return Deleted(**{name: count + more[name] for name, count in self.counts().items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned(Deleted):
    """Result of a batch or a walk. before: rows that ended later stay; None when the batch could not begin, because
    another one was at work. place: None at the end."""

    before: datetime | None = None
    place: Place | None = None

    @property
    def is_blocked(self) -> bool:
        return self.before is None

    @property
    def is_last(self) -> bool:
        return self.before is not None and self.place is None


@dataclass(frozen=True, slots=True)
class Pruning:
    """Options of a walk. Only rows that ended longer ago than older_than are deleted; none in a dry run.

    Raises InvalidInput when older_than is less than a day, so that a mistake cannot empty a running system.
    """

    older_than: timedelta
    dry_run: bool = False
    batch: int = BATCH
    kind: RetentionKind = RetentionKind.DELIVERIES

    def __post_init__(self) -> None:
        if self.older_than < MIN_AGE:
            raise InvalidInput(
                "invalid_field", "older_than: must be at least 1d", field="older_than", status=422
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchRow(Deleted):
    before: datetime | None
    last_at: datetime | None
    last_id: int | None


async def prune_batch(connection: Connection, wanted: Pruning, after: Place | None = None) -> Pruned:
    """Prune one batch in one transaction: reads about `batch` rows after the place, oldest first."""
    params = {
        "older_than": wanted.older_than,
        "limit": wanted.batch,
        "after_at": after.at if after else None,
        "after_id": after.id if after else 0,
        "dry_run": wanted.dry_run,
    }
    row = await fetch_one(connection, load_queries("prune")[f"prune_{wanted.kind}"], params, _BatchRow)
    place = after if row.before is None else None
    if row.last_at is not None and row.last_id is not None:
        place = Place(row.last_at, row.last_id)
    return Pruned(**row.counts(), before=row.before, place=place)


async def prune(
    run_batch: Callable[[Place | None], Awaitable[Pruned]],
    after: Place | None = None,
    *,
    may_go_on: Callable[[Pruned], bool] = lambda _: True,
) -> Pruned:
    """Prune one kind in batches until nothing is left, or may_go_on, called after each with the sum so far, returns
    False. Tries again while another batch is at work."""
    done = await run_batch(after)
    while not done.is_last and may_go_on(done):
        one = await run_batch(done.place)
        if one.is_blocked:
            await asyncio.sleep(BLOCKED_SECONDS)
        done = replace(one, **done.plus(one).counts(), before=one.before or done.before)
    return done


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one kind is behind. looked_at: everything that ended up to then was deleted, or had to stay."""

    kind: str
    keep_seconds: float
    looked_at: datetime | None
    behind_seconds: float


async def read_lag(connection: Connection) -> list[Lag]:
    """Return how far each kind with an age is behind."""
    return await fetch_rows(connection, load_queries("prune")["retention_lag"], {}, Lag)


async def plan_retention(connection: Connection, policy: RetentionPolicy) -> Sequence[Lag]:
    """Note the ages that are applied from now on, and return how far each kind is behind."""
    ages = {kind.value: policy.age_of(kind) for kind in RetentionKind}
    await connection.execute(load_queries("prune")["plan_retention"], ages)
    return await read_lag(connection)


class RetentionWalk:
    """Walks through all kinds of rows with an age, again and again, a batch per step. Its pace follows the load.

    rest_seconds: how long to rest before the next step. Nothing is lost with the process: deleted rows are not read
    again.
    """

    def __init__(self, policy: RetentionPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._pace = Pace()
        self._left: list[RetentionKind] = []
        self._place: Place | None = None
        self.rest_seconds = IDLE_SECONDS

    @property
    def begins(self) -> bool:
        """Whether the next step is the first of a walk."""
        return not self._left

    async def step(self, run: Callable[[Pruning, Place | None], Awaitable[Pruned]]) -> Pruned | None:
        """Take one batch by `run`. Returns None when there is no kind with an age."""
        if not self._left:
            self._left, self._place = self._policy.kinds, None
        if not self._left:
            return None
        age = self._policy.age_of(self._left[0])
        assert age is not None
        started = self._clock()
        try:
            done = await run(Pruning(age, batch=self._pace.batch, kind=self._left[0]), self._place)
        except DatabaseUnavailable:  # one reason is a batch that takes longer than a statement may
            self._pace = self._pace.after(2 * BATCH_SECONDS)
            raise
        self._note(done, self._clock() - started)
        return done

    def _note(self, done: Pruned, seconds: float) -> None:
        if done.is_blocked:
            self.rest_seconds = 1.0
            return
        self._pace = self._pace.after(seconds)
        self.rest_seconds, self._place = self._pace.rest_seconds, done.place
        if done.place is None:
            self._left = self._left[1:]
            if not self._left:
                self.rest_seconds = IDLE_SECONDS
