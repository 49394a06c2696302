"""Attempts as they finish, none left out. Reads only.

An attempt gets its time a moment before its transaction commits, so what appears next may be older than what was
seen last. A follower therefore goes over the log in passes, and each pass begins a little earlier than the one before
has ended: at its floor. Repeats are the price; who follows drops them by their ids.

How far the floor may rise is known, not guessed. At the beginning of a pass the time and a transaction number are
noted: the mark. Every transaction with a later number finishes its attempts after the mark's time. Once all with
earlier numbers have ended, nothing from before the mark can appear any more, and the next pass begins there.

A clock that is set back dates what finishes from then on before the mark: then a pass begins anew at the clock's time.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.operations.attempt_log import AttemptFilter, LoggedAttempt, Position, Scan, gather

CLOCK_MARGIN = timedelta(seconds=1)
"""The database's clock may be set back a little."""

MAX_OPEN = timedelta(seconds=60)
"""Results are written by one statement, which its role may run for 30 s. A longer transaction is not ours, and
nobody waits for it."""


@dataclass(frozen=True, slots=True)
class FollowCursor:
    """Where a follower is: at `position` in a pass; the next one begins at `floor`. The mark is of this pass."""

    position: Position
    floor: datetime
    mark_at: datetime
    mark_transaction: int
    in_pass: bool = True


@dataclass(frozen=True, slots=True)
class Followed:
    """Attempts, oldest first; with `more` there are others to be had at once."""

    items: list[LoggedAttempt]
    cursor: FollowCursor
    more: bool


@dataclass(frozen=True, slots=True)
class _Horizon:
    at: datetime
    transaction: int
    oldest_open: int


async def follow_attempts(
    connection: Connection, wanted: AttemptFilter, cursor: FollowCursor | None, *, limit: int = 50
) -> Followed:
    """Return attempts that finished since the cursor, and some earlier ones again. Without a cursor: from now on."""
    if cursor is None or not cursor.in_pass:
        cursor = _begin_pass(await _read_horizon(connection), cursor)
    page = await gather(connection, wanted, _scanner(connection, cursor), None, limit)
    if page.following is not None:
        return Followed(page.items, replace(cursor, position=page.following), more=True)
    ended = replace(cursor, position=Position(cursor.floor, 0), in_pass=False)
    return Followed(page.items, ended, more=False)


def _begin_pass(now: _Horizon, last: FollowCursor | None) -> FollowCursor:
    """The pass goes from the last floor on. The next one may leave out what is settled by now."""
    if last is None:
        return FollowCursor(Position(now.at, 0), now.at, now.at, now.transaction)
    if now.at < last.mark_at - CLOCK_MARGIN:
        begin = now.at - MAX_OPEN
        return FollowCursor(Position(begin, 0), begin, now.at, now.transaction)
    oldest_floor = max(last.floor, now.at - MAX_OPEN)
    if now.oldest_open < last.mark_transaction:
        return replace(last, floor=oldest_floor, in_pass=True)
    floor = max(oldest_floor, last.mark_at - CLOCK_MARGIN)
    return FollowCursor(last.position, floor, now.at, now.transaction)


async def _read_horizon(connection: Connection) -> _Horizon:
    return await fetch_one(connection, load_queries("attempt_log")["read_horizon"], {}, _Horizon)


def _scanner(connection: Connection, cursor: FollowCursor) -> Scan:
    async def scan(begin: Position | None, how_many: int) -> list[Position]:
        after = begin or cursor.position
        params = {"after_at": after.finished_at, "after_id": after.id, "limit": how_many}
        return await fetch_rows(connection, load_queries("attempt_log")["scan_forward"], params, Position)

    return scan
