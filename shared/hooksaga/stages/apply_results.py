"""Apply the results of attempts: sagas end, wait for a retry or become dead letters; their subscription's flow follows.

Read results and flow in one statement, without a lock, decide in Python (core/saga.py, core/flow.py), and write in one
statement, which applies only what is still as it was read. A dead letter's snapshot is copied inside the database.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypedDict

from msgspec.structs import replace as changed

from hooksaga.adapters.database import Connection, fetch_rows, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.flow import Flow, after_results, makes_room
from hooksaga.core.not_sent import ENDED
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import RetryPolicy, Saga, SagaStatus, decide
from hooksaga.stages.batches import refused_alone
from hooksaga.stages.end_waiting import reasons_of_inactive
from hooksaga.stages.flow_rows import ResultFlow, flow_columns, read_flow
from hooksaga.stages.saga_rows import FinishedJob, LockedSaga, MovedRow, SagaMoved

BATCH = 500
Decided = Sequence[tuple[FinishedJob, Saga]]


async def apply_results(
    connection: Connection,
    defaults: RetryPolicy,
    *,
    job_ids: Sequence[int],
    on_left: Callable[[int], None] = lambda _job_id: None,
) -> list[SagaMoved]:
    """Apply the results of the named jobs, at most BATCH of them, each exactly once.

    A result whose subscription's flow another session is changing is reported to on_left and stays for the next call.
    Raises RowRefused for results that the database rejects, after the others have been applied.
    """
    left: list[int] = []
    moves: list[SagaMoved] = []
    try:
        moves += await refused_alone(partial(_apply, connection, defaults, left.append), job_ids)
        if left:  # one may be locked, and the others can do without it
            again, left = left, []
            moves += await refused_alone(
                partial(_apply, connection, defaults, left.append, around_locks=True), again
            )
    except RowRefused as refused:
        refused.done = [*moves, *refused.done]
        raise
    finally:
        for job_id in left:
            on_left(job_id)
    return moves


async def _apply(
    connection: Connection,
    defaults: RetryPolicy,
    on_left: Callable[[int], None],
    seen: dict[int, Callable[[], RefusedRow]],
    job_ids: Sequence[int],
    *,
    around_locks: bool = False,
) -> list[SagaMoved]:
    query = load_queries("orchestrate")["unlocked_results" if around_locks else "finished_jobs"]
    jobs = await fetch_rows(connection, query, {"job_ids": list(job_ids)}, FinishedJob)
    seen |= {job.job_id: job.refused_row for job in jobs}
    if not jobs:
        return []
    flows = {job.subscription_id: read_flow(job.flow) for job in jobs if job.flow is not None}
    decided = [
        (job, decide(job.saga(), job.trigger(flows[job.subscription_id]), job.policy(defaults), job.now))
        for job in jobs
    ]
    flow_changes = _flow_changes(defaults, flows, decided)
    dead_letters = await _write(connection, flows, decided, flow_changes)
    for job, saga in decided:
        if saga.id not in dead_letters:
            on_left(job.job_id)
    told = {one: _told(row, defaults, flow_changes.get(one)) for one, row in flows.items()}
    return [
        _moved(job, saga, defaults, dead_letters[saga.id], told[job.subscription_id])
        for job, saga in decided
        if saga.id in dead_letters
    ]


async def _write(
    connection: Connection,
    flows: Mapping[int, ResultFlow],
    decided: Decided,
    flow_changes: Mapping[int, Flow],
) -> dict[int, int | None]:
    """Write what was decided. Returns the moved sagas, each with its dead letter."""
    inactive = await reasons_of_inactive(
        connection, [(job, saga) for job, saga in decided if _unsent(job, saga)]
    )
    erased = {saga.id: ENDED[ErrorCode.ERASED] for job, saga in decided if job.error_code == ErrorCode.ERASED}
    columns, name = _columns(decided, {**inactive, **erased}, flow_changes), "apply_results"
    if flow_changes or any(saga.status is SagaStatus.DEAD_LETTERED for _, saga in decided):
        changed_rows = [(flows[subscription_id], flow) for subscription_id, flow in flow_changes.items()]
        columns, name = columns | flow_columns(changed_rows), "apply_results_and_flow"
    async with refusals():
        moved = await fetch_rows(connection, load_queries("orchestrate")[name], columns, MovedRow)
    return {row.saga_id: row.dead_letter_id for row in moved}


class _Told(TypedDict):
    """What moves tell of their subscription."""

    has_due: bool
    made_room: bool
    wake_at: datetime | None
    breaker_changed: bool


def _told(row: ResultFlow, defaults: RetryPolicy, change: Flow | None) -> _Told:
    after = change or row
    is_open = change is not None or makes_room(row.settings(defaults), row, row.in_flight)
    return {
        "has_due": row.has_due or row.has_ordered_due,
        "made_room": row.has_ordered_due or (row.has_due and is_open),
        "wake_at": None if after.wake_at == row.wake_at else after.wake_at,
        "breaker_changed": after.breaker_opened_at != row.breaker_opened_at,
    }


def _unsent(job: FinishedJob, saga: Saga) -> bool:
    return saga.status is SagaStatus.DEAD_LETTERED and job.error_code == ErrorCode.SUBSCRIPTION_INACTIVE


def _flow_changes(
    defaults: RetryPolicy, flows: Mapping[int, ResultFlow], decided: Decided
) -> dict[int, Flow]:
    """Return the new flow of each subscription whose flow these results change."""
    of_each: dict[int, list[tuple[FinishedJob, Saga]]] = defaultdict(list)
    for job, saga in decided:
        of_each[job.subscription_id].append((job, saga))
    changes: dict[int, Flow] = {}
    for subscription_id, mine in of_each.items():
        row = flows[subscription_id]
        before = row.flow()
        results = [job.result() for job, _ in mine]
        after = after_results(row.settings(defaults), before, results, row.in_flight, row.now)
        due = [saga.next_attempt_at for _, saga in mine if saga.status is SagaStatus.PENDING_RETRY]
        if due:
            after = changed(after, wake_at=min([*due, after.wake_at] if after.wake_at else due))
        # A starter that has read the past wake_at knows nothing of these retries: it must not clear it.
        if after != before or (due and before.wake_at is not None and before.wake_at <= row.now):
            changes[subscription_id] = after
    return changes


def _columns(
    decided: Decided, reasons: Mapping[int, str], flow_changes: Mapping[int, Flow]
) -> dict[str, list[Any]]:
    return {
        "saga_ids": [saga.id for _, saga in decided],
        "attempts_at": [job.next_attempt_at for job, _ in decided],
        "statuses": [saga.status.value for _, saga in decided],
        "attempt_counts": [saga.attempt_count for _, saga in decided],
        "next_attempts": [saga.next_attempt_at for _, saga in decided],
        "error_codes": [saga.final_error_code for _, saga in decided],
        "reasons": [reasons.get(saga.id) for _, saga in decided],
        "subscription_ids": [job.subscription_id for job, _ in decided],
        "change_flow": [job.subscription_id in flow_changes for job, _ in decided],
    }


def _moved(
    job: FinishedJob, saga: Saga, defaults: RetryPolicy, dead_letter_id: int | None, told: _Told
) -> SagaMoved:
    return SagaMoved(
        saga_id=saga.id,
        webhook_id=job.webhook_id,
        subscription_id=job.subscription_id,
        status=saga.status,
        attempt_count=saga.attempt_count,
        next_attempt_at=saga.next_attempt_at,
        final_error_code=saga.final_error_code,
        job_id=job.job_id,
        dead_letter_id=dead_letter_id,
        worker_id=job.worker_id,
        max_retry_limit=job.policy(defaults).max_retry_limit,
        previous_status=SagaStatus(job.status),
        traceparent=job.traceparent,
        end_to_end_ms=_end_to_end_ms(job) if saga.status is SagaStatus.COMPLETED else None,
        **told,
    )


def _end_to_end_ms(row: LockedSaga) -> float | None:
    return None if row.accepted_at is None else (row.now - row.accepted_at).total_seconds() * 1000
