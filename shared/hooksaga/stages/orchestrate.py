"""Move sagas: apply results, start attempts, schedule retries, create dead letters. No other stage moves sagas.

Each function is one transaction: lock the sagas, decide in Python (core/saga.py), apply in one statement.
It sends no HTTP and reads no payload; a dead letter's snapshot is copied inside the database.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, LiteralString

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, NotFound, RefusedRow
from hooksaga.core.not_sent import CANCELED, Inactive, why_not_sent
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import (
    Cancel,
    Due,
    IllegalMove,
    RetryPolicy,
    Saga,
    SagaStatus,
    decide,
)
from hooksaga.stages.batches import refused_alone
from hooksaga.stages.saga_rows import FinishedJob, LockedSaga, MovedRow, SagaMoved, WaitingSaga

BATCH = 500


async def apply_results(
    connection: Connection,
    defaults: RetryPolicy,
    *,
    job_ids: Sequence[int] | None = None,
    limit: int = BATCH,
) -> list[SagaMoved]:
    """Apply the results of finished jobs, each exactly once: the named jobs, or the oldest.

    Raises RowRefused for results that the database rejects, after the others have been applied.
    """
    return await refused_alone(partial(_apply, connection, defaults, limit), job_ids)


async def _apply(
    connection: Connection,
    defaults: RetryPolicy,
    limit: int,
    seen: dict[int, RefusedRow],
    job_ids: Sequence[int] | None,
) -> list[SagaMoved]:
    queries = load_queries("orchestrate")
    async with transaction(connection):
        if job_ids is None:
            jobs = await fetch_rows(connection, queries["lock_finished_jobs"], {"limit": limit}, FinishedJob)
        else:
            named = {"job_ids": list(job_ids)}
            jobs = await fetch_rows(connection, queries["lock_finished_jobs_by_id"], named, FinishedJob)
        seen |= {job.job_id: replace(job.refused_row(), job_id=job.job_id) for job in jobs}
        if not jobs:
            return []
        decided = [(job, decide(job.saga(), job.trigger(), job.policy(defaults), job.now)) for job in jobs]
        unsent = [
            (job, saga)
            for job, saga in decided
            if saga.status is SagaStatus.DEAD_LETTERED and job.error_code == ErrorCode.SUBSCRIPTION_INACTIVE
        ]
        columns = _result_columns(decided, await _reasons(connection, unsent))
        moved = await fetch_rows(connection, queries["apply_results"], columns, MovedRow)
    dead_letters = {row.saga_id: row.dead_letter_id for row in moved}
    return [
        _moved(job, saga, defaults, job.job_id, dead_letters[saga.id], job)
        for job, saga in decided
        if saga.id in dead_letters
    ]


async def _reasons(connection: Connection, unsent: Sequence[tuple[LockedSaga, Saga]]) -> dict[int, str]:
    """Return why each saga ended without another attempt: the reason its subscription receives no deliveries."""
    if not unsent:
        return {}
    ids = {"ids": sorted({row.subscription_id for row, _ in unsent})}
    found = {
        one.id: one for one in await fetch_rows(connection, _query("inactive_subscriptions"), ids, Inactive)
    }
    return {
        saga.id: why_not_sent(found.get(row.subscription_id), saga.final_error_code) for row, saga in unsent
    }


def _result_columns(
    decided: Sequence[tuple[FinishedJob, Saga]], reasons: Mapping[int, str]
) -> dict[str, list[Any]]:
    return {
        "saga_ids": [saga.id for _, saga in decided],
        "job_ids": [job.job_id for job, _ in decided],
        "statuses": [saga.status.value for _, saga in decided],
        "attempt_counts": [saga.attempt_count for _, saga in decided],
        "next_attempts": [saga.next_attempt_at for _, saga in decided],
        "error_codes": [saga.final_error_code for _, saga in decided],
        "reasons": [reasons.get(saga.id) for _, saga in decided],
    }


async def start_first_attempts(
    connection: Connection, defaults: RetryPolicy, *, limit: int = BATCH
) -> list[SagaMoved]:
    """Create the first job of the oldest Pending sagas."""
    return await _start(
        connection, defaults, "lock_waiting_sagas", {"status": SagaStatus.PENDING, "limit": limit}
    )


async def start_due_retries(
    connection: Connection, defaults: RetryPolicy, *, limit: int = BATCH
) -> list[SagaMoved]:
    """Create the next job of the PendingRetry sagas that are due."""
    return await _start(
        connection, defaults, "lock_waiting_sagas", {"status": SagaStatus.PENDING_RETRY, "limit": limit}
    )


async def start_attempts_of(
    connection: Connection, defaults: RetryPolicy, saga_ids: Sequence[int]
) -> list[SagaMoved]:
    """Create the next job of the named sagas. Sagas that are not waiting or not yet due stay unchanged."""
    return await _start(connection, defaults, "lock_waiting_sagas_by_id", {}, saga_ids)


async def _start(
    connection: Connection,
    defaults: RetryPolicy,
    query: str,
    params: dict[str, Any],
    named: Sequence[int] | None = None,
) -> list[SagaMoved]:
    async def start(seen: dict[int, RefusedRow], saga_ids: Sequence[int] | None) -> list[SagaMoved]:
        by_id = {"saga_ids": list(saga_ids or ())}
        lock, wanted = (query, params) if saga_ids is None else ("lock_waiting_sagas_by_id", by_id)
        async with transaction(connection):
            waiting = await fetch_rows(connection, _query(lock), wanted, WaitingSaga)
            seen |= {row.id: row.refused_row() for row in waiting}
            return await _move_waiting(connection, defaults, waiting, lambda row: Due(row.deliverable))

    return await refused_alone(start, named)


def _query(name: str) -> LiteralString:
    return load_queries("orchestrate")[name]


async def cancel_saga(
    connection: Connection, defaults: RetryPolicy, saga_id: int, *, tenant_id: str | None = None
) -> SagaMoved:
    """End a waiting saga as DeadLettered with `canceled`. Canceling it again returns the same result.

    Raises NotFound `saga_not_found`, or Conflict `saga_not_waiting` for a saga that is in progress or has ended.
    """
    named = {"saga_ids": [saga_id], "tenant_id": tenant_id}
    async with transaction(connection):
        rows = await fetch_rows(connection, _query("lock_sagas_by_id"), named, WaitingSaga)
        if not rows:
            raise NotFound("saga_not_found", f"there is no saga {saga_id}")
        if rows[0].final_error_code == ErrorCode.CANCELED and rows[0].status == SagaStatus.DEAD_LETTERED:
            return await _canceled_before(connection, defaults, rows[0])
        moved = await _move_waiting(connection, defaults, rows, lambda _: Cancel())
    if not moved:
        raise Conflict(
            "saga_not_waiting", f"saga {saga_id} is {rows[0].status}: only a waiting saga is canceled"
        )
    return moved[0]


async def _canceled_before(connection: Connection, defaults: RetryPolicy, row: WaitingSaga) -> SagaMoved:
    dead = await fetch_row(connection, _query("dead_letter_of_saga"), {"saga_id": row.id}, MovedRow)
    return _moved(row, row.saga(), defaults, None, dead.dead_letter_id if dead else None)


async def _move_waiting(
    connection: Connection,
    defaults: RetryPolicy,
    waiting: Sequence[WaitingSaga],
    trigger: Callable[[WaitingSaga], Due | Cancel],
) -> list[SagaMoved]:
    decided: list[tuple[WaitingSaga, Saga]] = []
    unsent: list[tuple[WaitingSaga, Saga]] = []
    canceled: dict[int, str] = {}
    for row in waiting:
        try:
            decided.append((row, decide(row.saga(), trigger(row), row.policy(defaults), row.now)))
            if isinstance(trigger(row), Cancel):
                canceled[row.id] = CANCELED
            elif not row.deliverable:
                unsent.append(decided[-1])
        except IllegalMove:
            continue  # named by a late or unrelated message: not waiting, or not due
    if not decided:
        return []
    reasons = canceled | await _reasons(connection, unsent)
    columns = {
        "saga_ids": [saga.id for _, saga in decided],
        "reasons": [reasons.get(saga.id) for _, saga in decided],
        "statuses": [saga.status.value for _, saga in decided],
        "error_codes": [saga.final_error_code for _, saga in decided],
        "max_attempts": [row.policy(defaults).max_retry_limit for row, _ in decided],
    }
    rows = {
        row.saga_id: row for row in await fetch_rows(connection, _query("start_attempts"), columns, MovedRow)
    }
    return [
        _moved(row, saga, defaults, rows[saga.id].job_id, rows[saga.id].dead_letter_id)
        for row, saga in decided
        if saga.id in rows
    ]


def _moved(
    row: LockedSaga,
    saga: Saga,
    defaults: RetryPolicy,
    job_id: int | None,
    dead_letter_id: int | None,
    job: FinishedJob | None = None,
) -> SagaMoved:
    return SagaMoved(
        saga_id=saga.id,
        webhook_id=row.webhook_id,
        subscription_id=row.subscription_id,
        status=saga.status,
        attempt_count=saga.attempt_count,
        next_attempt_at=saga.next_attempt_at,
        final_error_code=saga.final_error_code,
        job_id=job_id,
        dead_letter_id=dead_letter_id,
        worker_id=job.worker_id if job else None,
        lease_until=job.lease_until if job else None,
        max_retry_limit=row.policy(defaults).max_retry_limit,
        previous_status=SagaStatus(row.status),
        traceparent=row.traceparent,
        end_to_end_ms=_end_to_end_ms(row) if saga.status is SagaStatus.COMPLETED else None,
    )


def _end_to_end_ms(row: LockedSaga) -> float | None:
    return None if row.accepted_at is None else (row.now - row.accepted_at).total_seconds() * 1000


@dataclass(frozen=True, slots=True)
class _Delay:
    seconds: float | None


async def seconds_until_next_attempt(connection: Connection) -> float | None:
    """Return the seconds until the next waiting saga is due: negative when one is overdue, None when none waits."""
    row = await fetch_row(connection, _query("next_attempt_delay"), {}, _Delay)
    return row.seconds if row else None


async def oldest_due_seconds(connection: Connection) -> float:
    """Return for how many seconds the oldest due saga has been due; 0 when none is due."""
    row = await fetch_row(connection, _query("oldest_due"), {}, _Delay)
    return max(0.0, row.seconds or 0.0) if row else 0.0
