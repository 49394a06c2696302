"""Messages for committed changes. No delivery depends on them: the sweeps find the same work by SQL."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from hooksaga.adapters.database import Session
from hooksaga.adapters.queues import MAX_DELAY_SECONDS, Outgoing, Queue, Queues, Sent
from hooksaga.core.errors import QueueUnavailable
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.messages import (
    CancelMessage,
    DeadTaskEvent,
    DeliveryMessage,
    ResultMessage,
    RoutingMessage,
    SubscriptionMessage,
)
from hooksaga.core.models import rfc3339
from hooksaga.core.saga import SagaStatus
from hooksaga.core.trace import Traced
from hooksaga.operations.bulk_steps import BulkStep
from hooksaga.runtime.telemetry import logger
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.telemetry import note_unpublished
from hooksaga.stages.undispatched import WaitingJob, mark_dispatched


async def wake_router(queues: Queues, events: Iterable[Traced]) -> None:
    """Send the ids of events that wait in the outbox."""
    messages = [Outgoing(RoutingMessage(event_id=one), correlation_id=trace) for one, trace in events]
    await _send(queues, Queue.ROUTING, messages)


async def wake_orchestrator_for_subscriptions(queues: Queues, traces: Mapping[int, str | None]) -> None:
    """Tell the orchestrator that these subscriptions may have something to start: one message for each."""
    messages = [
        Outgoing(SubscriptionMessage(subscription_id=one), correlation_id=trace)
        for one, trace in traces.items()
    ]
    await _send(queues, Queue.ORCHESTRATION, messages)


async def wake_later(
    queues: Queues, waits: Mapping[int, float], traces: Mapping[int, str] | None = None
) -> None:
    """Have the orchestrator look at each subscription after so many seconds; longer waits are left to its tick."""
    messages = [
        Outgoing(
            SubscriptionMessage(subscription_id=one),
            delay_seconds=max(0, math.ceil(seconds)),
            correlation_id=(traces or {}).get(one),
        )
        for one, seconds in waits.items()
        if seconds <= MAX_DELAY_SECONDS
    ]
    await _send(queues, Queue.ORCHESTRATION, messages)


async def wake_orchestrator_for_step(queues: Queues, step: BulkStep, traces: Mapping[int, str]) -> None:
    """Have the orchestrator look at each subscription when the first of its sagas is due; it then finds the others.

    traces: the trace of each saga.
    """
    first: dict[int, tuple[float, int]] = {}
    for one in zip(step.subscription_ids, step.delays, step.saga_ids, strict=True):
        first[one[0]] = min(first.get(one[0], one[1:]), one[1:])
    waits = {subscription_id: seconds for subscription_id, (seconds, _) in first.items()}
    traced = {
        subscription_id: traces[saga_id]
        for subscription_id, (_, saga_id) in first.items()
        if saga_id in traces
    }
    await wake_later(queues, waits, traced)


async def wake_orchestrator_for_results(queues: Queues, jobs: Iterable[Traced]) -> None:
    """Send the ids of jobs with a result."""
    messages = [Outgoing(ResultMessage(job_id=one), correlation_id=trace) for one, trace in jobs]
    await _send(queues, Queue.ORCHESTRATION, messages)


async def ask_to_cancel(queues: Queues, saga: Traced) -> None:
    """Ask the orchestrator to end a waiting saga. Raises QueueUnavailable: no sweep would find a lost request."""
    request = Outgoing(CancelMessage(cancel_saga_id=saga.id), correlation_id=saga.correlation_id)
    sent = await queues.send(Queue.ORCHESTRATION, [request])
    if sent.failed:
        raise QueueUnavailable("the request could not be sent to the orchestrator; repeat the call")


async def dispatch_jobs(queues: Queues, session: Session, jobs: Sequence[WaitingJob]) -> int:
    """Send the jobs to delivery, those of quick and of slow receivers by separate queues, and record which were sent.

    Returns the number of sent jobs. Raises DatabaseUnavailable when they were sent but could not be recorded.
    """
    quick, slow = [job for job in jobs if not job.slow], [job for job in jobs if job.slow]
    told = await _send_jobs(queues, Queue.DELIVERY, quick)
    told += await _send_jobs(queues, Queue.DELIVERY_SLOW, slow)
    if told:
        await session.run(mark_dispatched, told)
    return len(told)


async def _send_jobs(queues: Queues, queue: Queue, jobs: Sequence[WaitingJob]) -> list[int]:
    messages = [
        Outgoing(
            DeliveryMessage(job_id=job.job_id, saga_id=job.saga_id),
            group=str(job.subscription_id),
            correlation_id=job.correlation_id,
        )
        for job in jobs
    ]
    sent = await _send(queues, queue, messages)
    return [jobs[position].job_id for position in sent.taken]


async def send_move_messages(queues: Queues, session: Session, moves: Sequence[SagaMoved]) -> None:
    """Send the messages for committed moves: DeadTaskEvents, and jobs to deliver.

    The jobs come last, because recording that they were sent can fail: messages for moves are sent only once.
    """
    await publish_dead_tasks(queues, [move for move in moves if move.status is SagaStatus.DEAD_LETTERED])
    started = [move for move in moves if move.status is SagaStatus.IN_PROGRESS]
    await dispatch_jobs(queues, session, [_waiting_job(move) for move in started])


def _waiting_job(move: SagaMoved) -> WaitingJob:
    assert move.job_id is not None
    return WaitingJob(
        job_id=move.job_id,
        saga_id=move.saga_id,
        subscription_id=move.subscription_id,
        slow=move.slow,
        webhook_id=move.webhook_id,
        traceparent=move.traceparent,
    )


async def publish_dead_tasks(queues: Queues, moves: Sequence[SagaMoved]) -> None:
    """Publish DeadTaskEvents, best effort: a refused one is logged and counted, and nothing else changes."""
    if not moves:
        return
    messages = [Outgoing(_dead_task(move), correlation_id=move.correlation_id) for move in moves]
    sent = await queues.send(Queue.DEAD_TASKS, messages)
    note_unpublished([moves[position] for position in sent.failed])


def _dead_task(move: SagaMoved) -> DeadTaskEvent:
    return DeadTaskEvent(
        taskId=move.job_id,
        sagaId=move.saga_id,
        eventId=event_id_text(move.webhook_id),
        subscriptionId=move.subscription_id,
        deadLetterId=move.dead_letter_id or 0,
        workerId=move.worker_id,
        attemptCount=move.attempt_count,
        maxAttempts=move.max_retry_limit,
        errorCode=move.final_error_code,
        errorMessage=f"dead-lettered after {move.attempt_count} attempts: {move.final_error_code}",
        timestamp=rfc3339(datetime.now(UTC)) or "",
    )


async def _send(queues: Queues, queue: Queue, messages: Sequence[Outgoing]) -> Sent:
    """Send the messages. The next sweep resends those that the queue refuses."""
    if not messages:
        return Sent()
    sent = await queues.send(queue, messages)
    if sent.failed:
        logger.warning("messages not taken", extra={"queue": queue.value, "messages": len(sent.failed)})
    return sent
