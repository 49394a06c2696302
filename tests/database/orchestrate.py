"""The orchestrator's stages as tests call them: by saga, or for all that wait."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.core.saga import RetryPolicy
from hooksaga.stages import apply_results as stage
from hooksaga.stages.apply_results import BATCH
from hooksaga.stages.end_waiting import cancel_saga
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.start_attempts import _Call, start_attempts
from hooksaga.stages.start_plan import ANY_NUMBER
from hooksaga.stages.wakes import (
    FIRST,
    oldest_due_seconds,
    seconds_until_next_wake,
    unapplied_results,
    waiting_subscriptions,
)

__all__ = [
    "BATCH",
    "apply_results",
    "cancel_saga",
    "oldest_due_seconds",
    "seconds_until_next_wake",
    "start_all",
    "start_attempts",
    "start_attempts_of",
    "start_one",
    "waiting_subscriptions",
]


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


async def apply_results(
    connection: Connection,
    defaults: RetryPolicy,
    *,
    job_ids: Sequence[int] | None = None,
    limit: int = BATCH,
    on_left: Callable[[int], None] = lambda _job_id: None,
) -> list[SagaMoved]:
    """Apply the results of the named jobs, or of the oldest whose results nobody has applied."""
    if job_ids is None:
        job_ids, after = list[int](), FIRST
        while after:
            page, after = await unapplied_results(connection, after=after)
            job_ids += page
        job_ids = sorted(job_ids)[:limit]
    return await stage.apply_results(connection, defaults, job_ids=job_ids, on_left=on_left)


async def start_all(connection: Connection, defaults: RetryPolicy) -> list[SagaMoved]:
    """Start what is due and has room, of every subscription."""
    ids, _ = await waiting_subscriptions(connection, limit=10_000)
    return (await start_attempts(connection, defaults, subscription_ids=ids)).moves


async def start_attempts_of(
    connection: Connection, defaults: RetryPolicy, saga_ids: Sequence[int]
) -> list[SagaMoved]:
    """Start what is due of the subscriptions of these sagas. Returns the moves of these sagas."""
    subscriptions = await fetch_rows(
        connection,
        "SELECT DISTINCT subscription_id AS id FROM webhook_delivery_sagas WHERE id = ANY (%(ids)s) ORDER BY 1",
        {"ids": list(saga_ids)},
        _Id,
    )
    moves: list[SagaMoved] = []
    ids = [one.id for one in subscriptions]
    while ids:
        started = await start_attempts(connection, defaults, subscription_ids=ids, most_woken=0)
        moves += started.moves
        ids = started.again if started.moves else []
    return [move for move in moves if move.saga_id in saga_ids]


async def start_one(connection: Connection, defaults: RetryPolicy, saga_id: int) -> list[SagaMoved]:
    """Start this saga, if it is due and its subscription has room, and no other."""
    (row,) = await fetch_rows(
        connection,
        "SELECT subscription_id AS id FROM webhook_delivery_sagas WHERE id = %(id)s",
        {"id": saga_id},
        _Id,
    )
    call = _Call(connection, defaults, ANY_NUMBER, timedelta(0))
    await call.run([row.id], 0, only=saga_id)
    return call.moves
