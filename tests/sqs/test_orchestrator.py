"""One call of the orchestrator's function: in which order it works, what it starts, which messages follow."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, LiteralString

import pytest

from functions.orchestrator import handler
from functions.router import handler as router
from hooksaga.adapters.database import Role
from hooksaga.adapters.queues import Queue
from hooksaga.aws import orchestration
from hooksaga.aws.function import Function, Invocation
from hooksaga.core.messages import DeadTaskEvent, DeliveryMessage, SubscriptionMessage
from hooksaga.core.saga import SagaStatus
from hooksaga.runtime.settings import Settings
from tests.conftest import Connect, SessionOf
from tests.database.seed import Seed
from tests.sqs.recording_queues import RecordingQueues

pytestmark = pytest.mark.database

PENDING, IN_PROGRESS = SagaStatus.PENDING, SagaStatus.IN_PROGRESS


def function_of(role: Role, session_of: SessionOf) -> tuple[Function, RecordingQueues]:
    """A function with queues that keep what is sent."""
    function, queues = Function(role), RecordingQueues()
    function.__dict__ |= {"session": session_of(role), "queues": queues, "settings": Settings()}
    return function, queues


def batch_of(*bodies: dict[str, int]) -> dict[str, Any]:
    records = [
        {"messageId": str(position), "body": json.dumps(body), "eventSource": "aws:sqs"}
        for position, body in enumerate(bodies)
    ]
    return {"Records": records}


class Orchestrator:
    """One call after the other."""

    def __init__(self, session_of: SessionOf) -> None:
        self._function, self.queues = function_of(Role.ORCHESTRATOR, session_of)

    async def take(self, *bodies: dict[str, int]) -> list[int]:
        """The positions of the messages that come back."""
        answer = await handler.take(self._function, Invocation(batch_of(*bodies), None))
        return [int(one["itemIdentifier"]) for one in answer["batchItemFailures"]]

    async def sweep(self) -> dict[str, int]:
        return await handler.sweep(self._function, Invocation({}, None))

    def woken(self) -> list[tuple[int, int]]:
        """Subscription and delay of each message to the orchestrator itself since the last look at what was sent."""
        return [
            (body.subscription_id, delay)
            for queue, body, delay in self.queues.taken()
            if queue is Queue.ORCHESTRATION and isinstance(body, SubscriptionMessage)
        ]


@pytest.fixture
def orchestrator(session_of: SessionOf) -> Orchestrator:
    return Orchestrator(session_of)


async def set_flow(seed: Seed, subscription: int, change: LiteralString) -> None:
    await seed.rewrite(f"UPDATE subscription_flow SET {change} WHERE subscription_id = %s", [subscription])


async def set_rate(seed: Seed, subscription: int, count: int, seconds: float) -> None:
    await seed.rewrite(
        "UPDATE subscriptions SET rate_limit_count = %s, rate_limit_seconds = %s WHERE id = %s",
        [count, seconds, subscription],
    )


async def waiting(seed: Seed, subscription: int, count: int) -> list[int]:
    return [await seed.saga(PENDING, subscription) for _ in range(count)]


async def states(seed: Seed, subscription: int) -> list[str]:
    rows = await seed.rows(
        "SELECT status::text FROM webhook_delivery_sagas WHERE subscription_id = %s ORDER BY id",
        [subscription],
    )
    return [row["status"] for row in rows]


async def test_a_routed_batch_wakes_each_subscription_once(seed: Seed, session_of: SessionOf) -> None:
    subscriptions = [await seed.subscription("a.batch") for _ in range(2)]
    events = [await seed.event("a.batch") for _ in range(5)]
    function, queues = function_of(Role.ROUTER, session_of)
    event = batch_of(*({"event_id": one} for one in events))
    assert await router.route(function, Invocation(event, None)) == {"batchItemFailures": []}
    sent = sorted(body.model_dump()["subscription_id"] for _, body, _ in queues.taken())
    assert sent == subscriptions
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 10


async def test_a_result_makes_room_for_the_next_in_the_same_call(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    """The message for the subscription comes first, and would find no room."""
    subscription = await seed.subscription()
    await set_flow(seed, subscription, "in_flight_limit = 1")
    done, next_one = await waiting(seed, subscription, 2)
    await orchestrator.take({"subscription_id": subscription})
    job = await seed.active_job(done)
    await seed.finish(job)
    orchestrator.queues.taken()
    assert await orchestrator.take({"subscription_id": subscription}, {"job_id": job}) == []
    assert await states(seed, subscription) == ["Completed", "InProgress"]
    started = DeliveryMessage(job_id=await seed.active_job(next_one), saga_id=next_one)
    assert orchestrator.queues.taken() == [(Queue.DELIVERY, started, 0)]


async def test_a_death_is_told_before_the_job_that_takes_its_room(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    subscription = await seed.subscription(max_retry_limit=1)
    await set_flow(seed, subscription, "in_flight_limit = 1")
    dies, _ = await waiting(seed, subscription, 2)
    await orchestrator.take({"subscription_id": subscription})
    job = await seed.active_job(dies)
    await seed.finish(job, "http_400")
    orchestrator.queues.taken()
    await orchestrator.take({"job_id": job})
    sent = orchestrator.queues.taken()
    assert [(queue, type(body)) for queue, body, _ in sent] == [
        (Queue.DEAD_TASKS, DeadTaskEvent),
        (Queue.DELIVERY, DeliveryMessage),
    ]


async def test_what_is_canceled_in_the_same_batch_is_not_started(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    subscription = await seed.subscription()
    canceled, _ = await waiting(seed, subscription, 2)
    await orchestrator.take({"subscription_id": subscription}, {"cancel_saga_id": canceled})
    assert await states(seed, subscription) == ["DeadLettered", "InProgress"]


async def test_a_backlog_is_started_batch_after_batch(
    seed: Seed, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksaga.stages.start_attempts.BATCH", 2)
    subscription = await seed.subscription()
    await waiting(seed, subscription, 5)
    await orchestrator.take({"subscription_id": subscription})
    assert await states(seed, subscription) == ["InProgress"] * 5
    assert orchestrator.woken() == []


async def test_the_jobs_of_slow_receivers_have_their_own_queue(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    """A receiver is slow once an attempt took over two seconds."""
    slow, quick = await seed.subscription(), await seed.subscription()
    job = await seed.job(slow)
    await seed.finish(job, duration_ms=2500)
    await waiting(seed, slow, 1)
    await waiting(seed, quick, 1)
    await orchestrator.take({"job_id": job}, {"subscription_id": quick})
    queues = {queue: body for queue, body, _ in orchestrator.queues.taken()}
    assert set(queues) == {Queue.DELIVERY, Queue.DELIVERY_SLOW}
    rows = await seed.rows("SELECT id FROM webhook_delivery_jobs WHERE subscription_id = %s AND slow", [slow])
    assert [queues[Queue.DELIVERY_SLOW].model_dump()["job_id"]] == [row["id"] for row in rows]


async def test_retries_of_one_subscription_have_one_message(seed: Seed, orchestrator: Orchestrator) -> None:
    """It arrives when the first is due; the call that it wakes sends the next one."""
    subscription = await seed.subscription(base_delay_seconds=30)
    jobs = [await seed.job(subscription) for _ in range(3)]
    for job in jobs:
        await seed.finish(job, "http_500")
    await orchestrator.take({"job_id": jobs[0]}, {"job_id": jobs[1]})
    ((woken, delay),) = orchestrator.woken()
    assert woken == subscription
    assert 25 <= delay <= 36
    await seed.rewrite("UPDATE subscription_flow SET wake_at = now() + interval '20 seconds'")
    await orchestrator.take({"job_id": jobs[2]})
    assert orchestrator.woken() == []


async def test_room_that_time_opens_has_one_message_however_often_it_is_looked_at(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    subscription = await seed.subscription()
    await set_rate(seed, subscription, 1, 10)
    await waiting(seed, subscription, 3)
    await orchestrator.take({"subscription_id": subscription})
    assert orchestrator.woken() == [(subscription, 11)]
    for _ in range(3):
        await orchestrator.take({"subscription_id": subscription})
        await orchestrator.sweep()
    assert orchestrator.woken() == []
    assert (await states(seed, subscription)).count("InProgress") == 1
    await seed.rewrite(
        "UPDATE subscription_flow SET wake_at = wake_at - interval '10 seconds', "
        "tokens_at = tokens_at - interval '10 seconds'"
    )
    await orchestrator.take({"subscription_id": subscription})
    assert (await states(seed, subscription)).count("InProgress") == 2
    assert orchestrator.woken() == [(subscription, 11)]


async def test_a_high_rate_costs_no_more_messages_than_sqs_can_delay(
    seed: Seed, orchestrator: Orchestrator
) -> None:
    """The next token comes after 20 ms; a message for it would arrive after a second."""
    subscription = await seed.subscription()
    await set_rate(seed, subscription, 50, 1)
    await waiting(seed, subscription, 2)
    await set_flow(seed, subscription, "tokens = 0, tokens_at = now() + interval '1 second'")
    await orchestrator.take({"subscription_id": subscription})
    await orchestrator.take({"subscription_id": subscription})
    assert orchestrator.woken() == [(subscription, 1)]


async def test_longer_waits_are_left_to_the_tick(seed: Seed, orchestrator: Orchestrator) -> None:
    subscription = await seed.subscription()
    await set_rate(seed, subscription, 1, 1000)
    await waiting(seed, subscription, 2)
    await orchestrator.take({"subscription_id": subscription})
    assert orchestrator.woken() == []
    await seed.rewrite(
        "UPDATE subscription_flow SET wake_at = now(), tokens_at = tokens_at - interval '1000 seconds'"
    )
    await orchestrator.sweep()
    assert await states(seed, subscription) == ["InProgress"] * 2


async def test_a_message_for_no_subscription_brings_forth_no_other(orchestrator: Orchestrator) -> None:
    assert await orchestrator.take({"subscription_id": 999_999_999}) == []
    assert orchestrator.queues.sent == []


@asynccontextmanager
async def locked_flow(connect: Connect, subscription: int) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Another session holds the flow row, until what this gives is called."""
    somebody = await connect(Role.OWNER)
    await somebody.execute("BEGIN")
    await somebody.execute(
        "SELECT FROM subscription_flow WHERE subscription_id = %s FOR UPDATE", [subscription]
    )

    async def let_go() -> None:
        await somebody.execute("COMMIT")

    try:
        yield let_go
    finally:
        await let_go()


def instead_of_pauses(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Awaitable[None]]) -> None:
    async def pause(_seconds: float) -> None:
        await do()

    monkeypatch.setattr(orchestration, "asyncio", SimpleNamespace(sleep=pause))


async def test_a_subscription_that_stays_locked_is_looked_at_again_by_a_message(
    seed: Seed, orchestrator: Orchestrator, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, free = await seed.subscription(), await seed.subscription()
    await waiting(seed, locked, 1)
    await waiting(seed, free, 1)
    instead_of_pauses(monkeypatch, lambda: asyncio.sleep(0))
    async with locked_flow(connect, locked):
        assert await orchestrator.take({"subscription_id": locked}, {"subscription_id": free}) == []
    assert (await states(seed, locked), await states(seed, free)) == (["Pending"], ["InProgress"])
    assert orchestrator.woken() == [(locked, 1)]


async def test_a_subscription_that_is_locked_for_a_moment_is_started_in_the_same_call(
    seed: Seed, orchestrator: Orchestrator, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await seed.subscription()
    await waiting(seed, subscription, 1)
    async with locked_flow(connect, subscription) as let_go:
        instead_of_pauses(monkeypatch, let_go)
        await orchestrator.take({"subscription_id": subscription})
    assert await states(seed, subscription) == ["InProgress"]
    assert orchestrator.woken() == []


async def test_a_result_that_cannot_change_the_flow_comes_back(
    seed: Seed, orchestrator: Orchestrator, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, other = await seed.subscription(), await seed.subscription()
    failed, good = await seed.job(subscription), await seed.job(other)
    await seed.finish(failed, "http_500")
    await seed.finish(good)
    instead_of_pauses(monkeypatch, lambda: asyncio.sleep(0))
    async with locked_flow(connect, subscription):
        assert await orchestrator.take({"job_id": failed}, {"job_id": good}) == [0]
    assert (await states(seed, subscription), await states(seed, other)) == (["InProgress"], ["Completed"])
    assert await orchestrator.take({"job_id": failed}) == []
    assert await states(seed, subscription) == ["PendingRetry"]


async def test_a_result_that_is_kept_for_a_moment_is_applied_in_the_same_call(
    seed: Seed, orchestrator: Orchestrator, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await seed.subscription()
    job = await seed.job(subscription)
    await seed.finish(job, "http_500")
    async with locked_flow(connect, subscription) as let_go:
        instead_of_pauses(monkeypatch, let_go)
        assert await orchestrator.take({"job_id": job}) == []
    assert await states(seed, subscription) == ["PendingRetry"]


async def test_the_tick_looks_at_every_waiting_subscription(
    seed: Seed, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestration, "BATCH", 2)
    subscriptions = [await seed.subscription() for _ in range(5)]
    for one in subscriptions:
        await waiting(seed, one, 1)
    await seed.rewrite("UPDATE subscription_flow SET wake_at = NULL")
    assert (await orchestrator.sweep())["moved"] == 5
    assert [await states(seed, one) for one in subscriptions] == [["InProgress"]] * 5


async def test_a_pause_holds_and_a_resume_drains(seed: Seed, orchestrator: Orchestrator) -> None:
    """With room for two: each pair of results starts the next two, without a tick."""
    subscription = await seed.subscription()
    await set_flow(seed, subscription, "in_flight_limit = 2")
    await seed.connection.execute("UPDATE subscriptions SET paused_at = now() WHERE id = %s", [subscription])
    await waiting(seed, subscription, 6)
    await orchestrator.take({"subscription_id": subscription})
    await orchestrator.sweep()
    assert await states(seed, subscription) == ["Pending"] * 6
    assert orchestrator.queues.taken() == []
    await seed.connection.execute(
        "UPDATE subscriptions SET paused_at = NULL, resumed_at = now() WHERE id = %s", [subscription]
    )
    message: dict[str, int] = {"subscription_id": subscription}
    most = 0
    for _ in range(20):
        await orchestrator.take(message)
        jobs: list[Any] = await seed.rows(
            "SELECT id FROM webhook_delivery_jobs WHERE status = 'Pending' ORDER BY id"
        )
        if not jobs:
            break
        most = max(most, (await states(seed, subscription)).count("InProgress"))
        message = {"job_id": jobs[0]["id"]}
        await seed.finish(message["job_id"])
    assert await states(seed, subscription) == ["Completed"] * 6
    assert 2 <= most <= 6  # the limit grows with each success while it is full
