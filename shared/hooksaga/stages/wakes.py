"""What an orchestrator is to look at, and when: subscriptions and results that nothing has told it of."""

from collections.abc import Sequence

import msgspec

from hooksaga.adapters.database import Connection, fetch_one, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries

PAGE = 500
FIRST = (0, 0)
"""Before all results: a subscription and one of its sagas."""


class _WaitingSubscription(msgspec.Struct, frozen=True):
    subscription_id: int
    is_closed: bool


class _Results(msgspec.Struct, frozen=True):
    job_ids: list[int]
    last: list[int] | None


class _Delay(msgspec.Struct, frozen=True):
    seconds: float | None


async def waiting_subscriptions(
    connection: Connection, *, after: int = 0, limit: int = PAGE
) -> tuple[list[int], int | None]:
    """Look at up to `limit` subscriptions with waiting sagas, above the id `after`: whatever messages have lost.

    Returns those that may have room, and the id after which to go on; None: these were the last ones.
    """
    params = {"after": after, "limit": limit}
    query = load_queries("orchestrate")["waiting_subscriptions"]
    rows = await fetch_rows(connection, query, params, _WaitingSubscription)
    last = rows[-1].subscription_id if len(rows) >= limit else None
    return [row.subscription_id for row in rows if not row.is_closed], last


async def unapplied_results(
    connection: Connection, *, after: Sequence[int] = FIRST, limit: int = PAGE
) -> tuple[list[int], Sequence[int] | None]:
    """Look for results that nobody has applied at up to `limit` sagas in progress after the given place.

    Returns the jobs of these results, and the place after which to go on; None: these were the last ones.
    """
    params = {"after_subscription": after[0], "after_saga": after[1], "limit": limit}
    page = await fetch_one(connection, load_queries("orchestrate")["unapplied_results"], params, _Results)
    return page.job_ids, page.last


async def seconds_until_next_wake(connection: Connection) -> float | None:
    """Return the seconds until a subscription is to be looked at: negative when one is overdue, None when none is."""
    row = await fetch_row(connection, load_queries("orchestrate")["next_wake"], {}, _Delay)
    return row.seconds if row else None


async def oldest_due_seconds(connection: Connection) -> float:
    """Return for how long the oldest saga has been due whose subscription has room; 0 when none is."""
    row = await fetch_row(connection, load_queries("orchestrate")["oldest_due"], {}, _Delay)
    return max(0.0, row.seconds or 0.0) if row else 0.0
