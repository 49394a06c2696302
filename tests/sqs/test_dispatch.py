"""After a commit: which messages are sent, and what follows when they are not taken."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.queues import Outgoing, Queue, Queues, Sent
from hooksaga.aws import dispatch
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.messages import DeadTaskEvent, SagaMessage
from hooksaga.core.saga import SagaStatus
from hooksaga.core.trace import Traced
from hooksaga.operations.bulk_steps import BulkStep
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.undispatched import WaitingJob
from tests.conftest import SessionOf
from tests.database.seed import Seed

EVENT = UUID("01a21f3b-ea21-7df2-8880-a4e8e3eb3d94")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class RecordingQueues(Queues):
    """Takes everything but for the queues named."""

    def __init__(self, *refusing: Queue) -> None:
        super().__init__({})
        self.refusing = refusing
        self.sent: list[tuple[Queue, Outgoing]] = []

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sent:
        positions = list(range(len(messages)))
        if queue in self.refusing:
            return Sent(failed=positions)
        self.sent += [(queue, message) for message in messages]
        return Sent(positions)


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
async def test_a_retry_within_fifteen_minutes_is_woken_when_it_is_due(wait: float, delays: list[int]) -> None:
    queues = RecordingQueues()
    due = datetime.now(UTC) + timedelta(seconds=wait)
    await tell(queues, moved(SagaStatus.PENDING_RETRY, next_attempt_at=due))
    assert [(queue, message.delay_seconds) for queue, message in queues.sent] == [
        (Queue.ORCHESTRATION, delay) for delay in delays
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
    await tell(queues, moved(SagaStatus.DEAD_LETTERED), moved(SagaStatus.PENDING_RETRY))
    assert [queue for queue, _ in queues.sent] == [Queue.ORCHESTRATION]


async def test_completed_sagas_need_no_message() -> None:
    queues = RecordingQueues()
    await tell(queues, moved(SagaStatus.COMPLETED))
    assert queues.sent == []


async def test_retries_and_deaths_are_told_before_the_database_can_fail() -> None:
    """The moves are committed and come once: what is not told now is told by no repetition of the message."""
    queues = RecordingQueues()
    moves = [
        moved(status)
        for status in (SagaStatus.IN_PROGRESS, SagaStatus.PENDING_RETRY, SagaStatus.DEAD_LETTERED)
    ]
    with pytest.raises(DatabaseUnavailable):
        await tell(queues, *moves)
    assert [queue for queue, _ in queues.sent] == [
        Queue.ORCHESTRATION,
        Queue.DEAD_TASKS,
        Queue.DELIVERY_RETRY,
    ]


@pytest.mark.database
async def test_only_jobs_that_were_taken_count_as_told(seed: Seed, session_of: SessionOf) -> None:
    first, retry = await seed.job(), await seed.job()
    waiting = [
        WaitingJob(first, 1, subscription_id=21, attempt_number=1, webhook_id=EVENT, traceparent=None),
        WaitingJob(retry, 2, subscription_id=22, attempt_number=2, webhook_id=EVENT, traceparent=None),
    ]
    queues = RecordingQueues(Queue.DELIVERY_RETRY)
    told = await dispatch.dispatch_jobs(queues, session_of(Role.ORCHESTRATOR), waiting)
    assert told == 1
    assert [(queue, message.group) for queue, message in queues.sent] == [(Queue.DELIVERY, "21")]
    rows = await seed.rows(
        "SELECT id, dispatched_at IS NOT NULL AS told FROM webhook_delivery_jobs ORDER BY id"
    )
    assert [(row["id"], row["told"]) for row in rows] == [(first, True), (retry, False)]


async def test_a_paced_saga_is_told_of_when_it_is_due() -> None:
    queues = RecordingQueues()
    await dispatch.wake_orchestrator_for_step(
        queues, BulkStep(1, "Running", [5, 6, 7], [-0.5, 0.05, 74.9]), {5: TRACE}
    )
    assert [(queue, message.body, message.delay_seconds) for queue, message in queues.sent] == [
        (Queue.ORCHESTRATION, SagaMessage(saga_id=saga_id), delay)
        for saga_id, delay in ((5, 0), (6, 1), (7, 75))
    ]


async def test_a_paced_saga_whose_message_is_not_taken_is_left_to_the_sweep() -> None:
    queues = RecordingQueues(Queue.ORCHESTRATION)
    await dispatch.wake_orchestrator_for_step(queues, BulkStep(1, "Running", [5], [0.0]), {})
    assert queues.sent == []


async def test_everything_that_follows_from_an_event_is_in_its_trace() -> None:
    queues, traceparent = RecordingQueues(), f"00-{TRACE}-00f067aa0ba902b7-01"
    moves = [
        moved(status, traceparent=traceparent)
        for status in (SagaStatus.IN_PROGRESS, SagaStatus.PENDING_RETRY, SagaStatus.DEAD_LETTERED)
    ]
    with pytest.raises(DatabaseUnavailable):
        await tell(queues, *moves)
    await dispatch.wake_router(queues, [Traced(1, TRACE)])
    await dispatch.wake_orchestrator_for_sagas(queues, [Traced(1, TRACE)])
    await dispatch.wake_orchestrator_for_results(queues, [Traced(1, TRACE)])
    await dispatch.ask_to_cancel(queues, Traced(1, TRACE))
    assert {message.correlation_id for _, message in queues.sent} == {TRACE}
    assert len(queues.sent) == 7


async def test_without_a_trace_messages_have_the_events_own() -> None:
    queues = RecordingQueues()
    await tell(queues, moved(SagaStatus.DEAD_LETTERED))
    assert [message.correlation_id for _, message in queues.sent] == [EVENT.hex]
