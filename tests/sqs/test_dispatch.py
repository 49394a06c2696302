"""After a commit: which messages are sent, and what follows when they are not taken."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.queues import Queue
from hooksaga.aws import dispatch
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.messages import DeadTaskEvent, SubscriptionMessage
from hooksaga.core.saga import SagaStatus
from hooksaga.core.trace import Traced
from hooksaga.operations.bulk_steps import BulkStep
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.undispatched import WaitingJob
from tests.conftest import SessionOf
from tests.database.seed import Seed
from tests.sqs.recording_queues import RecordingQueues

EVENT = UUID("01a21f3b-ea21-7df2-8880-a4e8e3eb3d94")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class BrokenSession(Session):
    def __init__(self) -> None:
        super().__init__(DatabaseAddress("host=127.0.0.1 port=1"), Role.ORCHESTRATOR)


def moved(status: SagaStatus, **changes: Any) -> SagaMoved:
    usual: dict[str, Any] = {
        "saga_id": 7,
        "webhook_id": EVENT,
        "subscription_id": 3,
        "status": status,
        "attempt_count": 2,
        "next_attempt_at": datetime.now(UTC) + timedelta(seconds=30),
        "final_error_code": "http_503",
        "job_id": 11,
        "dead_letter_id": 5 if status is SagaStatus.DEAD_LETTERED else None,
        "worker_id": "w",
        "max_retry_limit": 2,
    }
    return SagaMoved(**{**usual, **changes})


async def tell(queues: RecordingQueues, *moves: SagaMoved, session: Session | None = None) -> None:
    await dispatch.send_move_messages(queues, session or BrokenSession(), moves)


@pytest.mark.parametrize(
    ("wait", "delays"), [(29.5, [30]), (0, [0]), (-5, [0]), (899.5, [900]), (901, []), (3600, [])]
)
async def test_a_subscription_is_looked_at_within_fifteen_minutes_when_its_time_has_come(
    wait: float, delays: list[int]
) -> None:
    queues = RecordingQueues()
    await dispatch.wake_later(queues, {3: wait})
    assert [(queue, message.body, message.delay_seconds) for queue, message in queues.sent] == [
        (Queue.ORCHESTRATION, SubscriptionMessage(subscription_id=3), delay) for delay in delays
    ]


async def test_a_death_is_announced_with_all_that_an_alarm_needs() -> None:
    queues = RecordingQueues()
    await tell(queues, moved(SagaStatus.DEAD_LETTERED))
    ((queue, message),) = queues.sent
    assert (queue, message.delay_seconds, message.group) == (Queue.DEAD_TASKS, 0, None)
    assert isinstance(message.body, DeadTaskEvent)
    told = message.body.model_dump()
    assert datetime.fromisoformat(told.pop("timestamp")).tzinfo is not None
    assert told == {
        "taskId": 11,
        "sagaId": 7,
        "eventId": "evt_01a21f3bea217df28880a4e8e3eb3d94",
        "subscriptionId": 3,
        "deadLetterId": 5,
        "workerId": "w",
        "attemptCount": 2,
        "maxAttempts": 2,
        "errorCode": "http_503",
        "errorMessage": "dead-lettered after 2 attempts: http_503",
    }


async def test_a_death_that_cannot_be_announced_changes_nothing_else() -> None:
    queues = RecordingQueues(Queue.DEAD_TASKS)
    with pytest.raises(DatabaseUnavailable):
        await tell(queues, moved(SagaStatus.DEAD_LETTERED), moved(SagaStatus.IN_PROGRESS))
    assert [queue for queue, _ in queues.sent] == [Queue.DELIVERY]


@pytest.mark.parametrize("status", [SagaStatus.COMPLETED, SagaStatus.PENDING_RETRY])
async def test_what_is_completed_or_waits_needs_no_message(status: SagaStatus) -> None:
    queues = RecordingQueues()
    await tell(queues, moved(status))
    assert queues.sent == []


async def test_deaths_are_told_before_the_database_can_fail() -> None:
    """The moves are committed and come once: what is not told now is told by no repetition of the message."""
    queues = RecordingQueues()
    moves = [
        moved(SagaStatus.IN_PROGRESS, slow=True),
        moved(SagaStatus.IN_PROGRESS),
        moved(SagaStatus.DEAD_LETTERED),
    ]
    with pytest.raises(DatabaseUnavailable):
        await tell(queues, *moves)
    assert [queue for queue, _ in queues.sent] == [Queue.DEAD_TASKS, Queue.DELIVERY, Queue.DELIVERY_SLOW]


@pytest.mark.database
async def test_only_jobs_that_were_taken_count_as_told(seed: Seed, session_of: SessionOf) -> None:
    quick, slow = await seed.job(), await seed.job()
    waiting = [
        WaitingJob(quick, 1, subscription_id=21, slow=False, webhook_id=EVENT, traceparent=None),
        WaitingJob(slow, 2, subscription_id=22, slow=True, webhook_id=EVENT, traceparent=None),
    ]
    queues = RecordingQueues(Queue.DELIVERY_SLOW)
    told = await dispatch.dispatch_jobs(queues, session_of(Role.ORCHESTRATOR), waiting)
    assert told == 1
    assert [(queue, message.group) for queue, message in queues.sent] == [(Queue.DELIVERY, "21")]
    rows = await seed.rows(
        "SELECT id, dispatched_at IS NOT NULL AS told FROM webhook_delivery_jobs ORDER BY id"
    )
    assert [(row["id"], row["told"]) for row in rows] == [(quick, True), (slow, False)]


async def test_a_subscription_is_told_of_when_the_first_of_its_paced_sagas_is_due() -> None:
    queues = RecordingQueues()
    step = BulkStep(1, "Running", [5, 6, 7, 8, 9], [1, 2, 1, 3, 2], [-0.5, 0.05, 0.5, 74.9, 3.0])
    await dispatch.wake_orchestrator_for_step(queues, step, {5: TRACE, 7: "0" * 32})
    assert [
        (queue, message.body, message.delay_seconds, message.correlation_id) for queue, message in queues.sent
    ] == [
        (Queue.ORCHESTRATION, SubscriptionMessage(subscription_id=subscription_id), delay, trace)
        for subscription_id, delay, trace in ((1, 0, TRACE), (2, 1, None), (3, 75, None))
    ]


async def test_a_subscription_of_paced_sagas_whose_message_is_not_taken_is_left_to_the_sweep() -> None:
    queues = RecordingQueues(Queue.ORCHESTRATION)
    await dispatch.wake_orchestrator_for_step(queues, BulkStep(1, "Running", [5], [1], [0.0]), {})
    assert queues.sent == []


async def test_everything_that_follows_from_an_event_is_in_its_trace() -> None:
    queues, traceparent = RecordingQueues(), f"00-{TRACE}-00f067aa0ba902b7-01"
    moves = [
        moved(status, traceparent=traceparent)
        for status in (SagaStatus.IN_PROGRESS, SagaStatus.DEAD_LETTERED)
    ]
    with pytest.raises(DatabaseUnavailable):
        await tell(queues, *moves)
    await dispatch.wake_router(queues, [Traced(1, TRACE)])
    await dispatch.wake_orchestrator_for_subscriptions(queues, {1: TRACE})
    await dispatch.wake_later(queues, {1: 5}, {1: TRACE})
    await dispatch.wake_orchestrator_for_results(queues, [Traced(1, TRACE)])
    await dispatch.ask_to_cancel(queues, Traced(1, TRACE))
    assert {message.correlation_id for _, message in queues.sent} == {TRACE}
    assert len(queues.sent) == 7


async def test_without_a_trace_messages_have_the_events_own() -> None:
    queues = RecordingQueues()
    await tell(queues, moved(SagaStatus.DEAD_LETTERED))
    assert [message.correlation_id for _, message in queues.sent] == [EVENT.hex]
