"""Dead letters by any filter, newest first. Reads only."""

from dataclasses import asdict, dataclass

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.counts import MAX_COUNTED, Count
from hooksaga.operations.inspect import DeadLetterView
from hooksaga.operations.requeue import DeadLetterFilter, ids_of_time

MAX_SCANNED = 10_000
"""Maximum number of dead letters that one page reads to find those that were requeued, or were not."""

_MAX_STEP = 2_500


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """One page. following: the next page has the ids below; None after the last one."""

    items: list[DeadLetterView]
    following: int | None


@dataclass(frozen=True, slots=True)
class _Counted:
    found: int
    requeued: int
    standing: int


async def list_dead_letters(
    connection: Connection, wanted: DeadLetterFilter, *, before_id: int | None = None, limit: int = 50
) -> DeadLetterPage:
    """List dead letters with an id below before_id. With `requeued` or `standing`, a page may be short and still have a
    next one."""
    ids = await ids_of_time(connection, wanted)
    below = min((one for one in (before_id, ids.before_id) if one is not None), default=None)
    found: list[DeadLetterView] = []
    scanned, step = 0, limit
    while scanned < MAX_SCANNED:
        params = {**asdict(wanted), "after_id": ids.after_id, "before_id": below, "limit": step}
        query = load_queries("inspect")["list_dead_letters"]
        rows = await fetch_rows(connection, query, params, DeadLetterView)
        found += [row for row in rows if _matches(row, wanted)]
        if len(found) >= limit:
            return DeadLetterPage(found[:limit], found[limit - 1].id)
        if len(rows) < step:
            return DeadLetterPage(found, None)
        below = rows[-1].id
        scanned, step = scanned + step, min(step * 4, _MAX_STEP)
    return DeadLetterPage(found, below)


async def count_dead_letters(connection: Connection, wanted: DeadLetterFilter) -> Count:
    """Count the dead letters of `list_dead_letters`, among the newest MAX_COUNTED that match the rest of the filter."""
    ids = await ids_of_time(connection, wanted)
    params = {**asdict(wanted), "after_id": ids.after_id, "before_id": ids.before_id}
    row = await fetch_one(connection, load_queries("inspect")["count_dead_letters"], params, _Counted)
    if wanted.standing:
        value = row.standing
    elif wanted.requeued is None:
        value = row.found
    else:
        value = row.requeued if wanted.requeued else row.found - row.requeued
    return Count(value, at_least=row.found >= MAX_COUNTED)


def _matches(row: DeadLetterView, wanted: DeadLetterFilter) -> bool:
    if wanted.standing and not row.stands:
        return False
    return wanted.requeued is None or wanted.requeued == (row.requeued_as is not None)
