"""Delivery: SQS `delivery` and `delivery-slow`. Claim, POST, record, and only then let the messages go.

The POSTs of a batch run side by side, and each result is recorded when it is there; the copy is free when the last has
ended. So receivers that were slow lately have a queue of their own: a quick one never shares a batch with them.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from hooksaga.adapters.database import Role
from hooksaga.aws.dispatch import wake_orchestrator_for_results
from hooksaga.aws.function import Event, Invocation, check_times
from hooksaga.aws.sending_function import SendingFunction
from hooksaga.aws.sqs_events import failures, note_idle, read_messages
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow
from hooksaga.core.messages import DeliveryMessage
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.telemetry import note_attempts, note_claimed, note_refused

CLAIM_PAUSES_SECONDS = (0, 0.05, 0.2)
LOCKED_PAUSE_SECONDS = 0.2
"""Pause before a result with a locked row is written again, while there is time."""

Attempt: TypeAlias = asyncio.Task[AttemptResult]

function = SendingFunction(Role.DELIVERY)
WORKER_ID = f"{os.environ.get('AWS_LAMBDA_LOG_STREAM_NAME', 'local')[-60:]}:{secrets.token_hex(4)}"


def handler(event: Event, context: Any) -> Any:
    """Handle an SQS batch. `batchItemFailures` are exactly the messages whose result could not be written."""
    expect(event, Trigger.SQS)
    return function.run(run, event, context)


async def run(function: SendingFunction, invocation: Invocation) -> Any:
    check_times(function.settings, invocation)
    messages = read_messages(invocation.event, DeliveryMessage)
    if invocation.seconds_left() <= 0:  # too little time even to hand a claim back
        return failures(messages)
    idle, unwritten = await _claim_and_deliver(
        function, invocation, {message.body.job_id for message in messages}
    )
    note_idle(message for message in messages if message.body.job_id in idle)
    return failures(message for message in messages if message.body.job_id in unwritten)


async def _claim_and_deliver(
    function: SendingFunction, invocation: Invocation, job_ids: set[int]
) -> tuple[set[int], set[int]]:
    """Return the ids of jobs that belong to others, and of those whose message must return to the queue.

    Jobs that lost several leases are sent one by one, while there is time.
    """
    alone_from = deliver.alone_from_lost(function.settings.max_lost_leases)
    left, unwritten = job_ids, set[int]()
    while True:
        jobs, unknown = await _claim(function, left, alone_from)
        left = left - unknown - {job.id for job in jobs}
        unwritten |= unknown | await _deliver(function, invocation, jobs)
        if not left or not any(job.alone for job in jobs):
            return left, unwritten
        if invocation.seconds_left() < function.settings.http_timeout_seconds:
            return set(), unwritten | left


async def _deliver(function: SendingFunction, invocation: Invocation, jobs: Sequence[ClaimedJob]) -> set[int]:
    in_time = [job for job in jobs if _could_finish(function, invocation, job)]
    late = [job for job in jobs if job not in in_time]
    return await _hand_back(function, late) | await _attempt_all(function, invocation, in_time)


async def _claim(
    function: SendingFunction, job_ids: Iterable[int], alone_from: int
) -> tuple[list[ClaimedJob], set[int]]:
    """Return the claimed jobs, and the ids of those that could not be claimed in time.

    A claim skips locked rows. A worker keeps its lock, but the orchestrator holds a lock briefly while it records that
    it sent this very message, and then no other worker has a message for the job. So missing jobs are claimed again
    until such a lock must have ended.
    """
    jobs: list[ClaimedJob] = []
    missing = set(job_ids)
    for pause in CLAIM_PAUSES_SECONDS:
        await asyncio.sleep(pause)
        claim = partial(
            deliver.claim_jobs,
            job_ids=sorted(missing),
            worker_id=WORKER_ID,
            alone_from=alone_from,
            one_alone=not any(job.alone for job in jobs),
        )
        try:
            claimed = await function.session.run(claim, lease_seconds=function.settings.lease_seconds)
        except DatabaseUnavailable as error:
            logger.warning("database unavailable", extra={"messages": len(missing), "error": str(error)})
            return jobs, missing
        note_claimed(claimed)
        jobs += claimed
        missing -= {job.id for job in claimed}
        if not missing:
            break
    return jobs, set()


def _could_finish(function: SendingFunction, invocation: Invocation, job: ClaimedJob) -> bool:
    """Return whether the POST would end before the function does. Otherwise its result could not be written."""
    return (job.timeout_seconds or function.settings.http_timeout_seconds) < invocation.seconds_left()


async def _hand_back(function: SendingFunction, jobs: Sequence[ClaimedJob]) -> set[int]:
    try:
        if jobs:
            await function.session.run(deliver.hand_back_jobs, jobs=jobs, worker_id=WORKER_ID)
    except DatabaseUnavailable as error:  # their leases expire
        logger.warning("jobs not handed back", extra={"jobs": len(jobs), "error": str(error)})
    return {job.id for job in jobs}


async def _attempt_all(
    function: SendingFunction, invocation: Invocation, jobs: Sequence[ClaimedJob]
) -> set[int]:
    """Send POSTs concurrently, and write finished results while others continue."""
    deadline = time.monotonic() + invocation.seconds_left()
    timeout = function.settings.http_timeout_seconds
    pending = {
        asyncio.create_task(deliver.attempt(function.sender, function.box, job, timeout_seconds=timeout))
        for job in jobs
    }
    unwritten: set[int] = set()
    locked: list[AttemptResult] = []
    while pending or (locked and time.monotonic() < deadline):
        done, pending = await _wait_for_some(pending, LOCKED_PAUSE_SECONDS if locked else None)
        lost, locked = await _record(function, [*(task.result() for task in done), *locked])
        unwritten |= lost
    return unwritten | {result.job.id for result in locked}


async def _wait_for_some(pending: set[Attempt], at_most: float | None) -> tuple[set[Attempt], set[Attempt]]:
    """Wait until some tasks are done. Return the done and the pending ones."""
    if not pending:
        await asyncio.sleep(at_most or 0)
        return set(), pending
    done, pending = await asyncio.wait(pending, timeout=at_most, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)  # results of the same moment share a statement
    done |= {task for task in pending if task.done()}
    return done, pending - done


async def _record(
    function: SendingFunction, results: Sequence[AttemptResult]
) -> tuple[set[int], list[AttemptResult]]:
    """Write results. Return the ids of jobs whose result could not be written, and the results with locked rows."""
    refused: list[RefusedRow] = []
    locked: set[int] = set()
    record = partial(
        deliver.record_results,
        results=results,
        worker_id=WORKER_ID,
        on_refusal=refused.append,
        on_locked=locked.add,
    )
    try:
        written = await function.session.run(record)
    except DatabaseUnavailable as error:
        logger.warning("results not written", extra={"jobs": len(results), "error": str(error)})
        return {result.job.id for result in results}, []
    note_refused(refused)
    kept = [result for result in results if result.job.id in locked - written]
    note_attempts([result for result in results if result not in kept], written, WORKER_ID)
    jobs = sorted(result.traced_job for result in results if result.job.id in written)
    await wake_orchestrator_for_results(function.queues, jobs)
    return set(), kept
