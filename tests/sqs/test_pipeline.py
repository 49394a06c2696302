"""One event after the other through five functions and their queues, whatever befalls them on the way."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hooksaga.adapters.database import Role
from hooksaga.core.flow import FIRST_LIMIT
from hooksaga.local.receiver_journal import Signature
from hooksaga.local.sqs.event_source import Handled
from hooksaga.local.sqs.queue_set import ID_QUEUES
from tests.faults.promises import Promise
from tests.sqs.conftest import kill_busy, until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("pipeline")
    async with running_pipeline(folder, module_database, sqs_endpoint) as pipeline:
        yield pipeline


@pytest_asyncio.fixture(loop_scope="module")
async def pipeline(running: Pipeline, request: pytest.FixtureRequest) -> AsyncIterator[Pipeline]:
    """After each test nothing is left in any queue, and the audit is clean."""
    yield running
    running.weather.clear()
    try:
        await running.until_quiet()
    finally:
        await running.purge()


def states(pipeline: Pipeline, event_type: str) -> Counter[str]:
    return Counter(saga["status"] for saga in pipeline.sagas(event_type))


def batches(pipeline: Pipeline, queue: str) -> list[Handled]:
    return list(pipeline.system.sources[queue].handled)


async def test_an_event_reaches_its_receiver_through_five_functions(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.first", "/ok")
    payload = {"total": 1, "name": "ü\u0000"}
    event_id = await pipeline.post("a.first", payload)
    assert await pipeline.until_ended("a.first", 1) == {"Completed": 1}
    (received,) = pipeline.received(path)
    assert (received.webhook_id, received.attempt, received.signature) == (event_id, "1", Signature.GOOD)
    assert json.loads(received.body) == payload
    view = await pipeline.call("GET", f"/v1/events/{event_id}")
    assert [attempt["status"] for attempt in view["sagas"][0]["attempts"]] == ["Completed"]
    assert all(pipeline.system.functions[name].invocations for name in ("ingest", "router", "orchestrator"))
    for queue in (
        "routing",
        "orchestration",
        "delivery",
    ):  # where a tick was first, the message is still on its way
        await until(lambda queue=queue: batches(pipeline, queue), f"a batch from {queue}")
    await until(lambda: pipeline.system.schedules["lease_cleaner"].outcomes, "the cleaner has ticked")


@pytest.mark.guarantee(Promise.QUEUES, "every message twice")
async def test_every_message_may_come_twice(pipeline: Pipeline) -> None:
    _, good = await pipeline.subscribe("a.twice", "/ok")
    _, flaky = await pipeline.subscribe("a.twice", "/flaky/1")
    pipeline.weather.change = lambda batch: [batch, [*batch, *batch]]
    events = [await pipeline.post("a.twice", number) for number in range(10)]
    assert await pipeline.until_ended("a.twice", 20) == {"Completed": 20}
    assert pipeline.requests_per_event(good) == dict.fromkeys(events, 1)
    assert pipeline.requests_per_event(flaky) == dict.fromkeys(events, 2)


@pytest.mark.guarantee(Promise.QUEUES, "every batch in reverse, one by one")
async def test_messages_may_come_in_reverse_and_one_by_one(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.reversed", "/ok")
    pipeline.weather.change = lambda batch: [[message] for message in reversed(batch)]
    events = await asyncio.gather(*(pipeline.post("a.reversed", number) for number in range(10)))
    assert await pipeline.until_ended("a.reversed", 10) == {"Completed": 10}
    assert pipeline.requests_per_event(path) == dict.fromkeys(events, 1)


@pytest.mark.guarantee(Promise.QUEUES, "every message lost")
async def test_everything_arrives_though_every_message_is_lost(pipeline: Pipeline) -> None:
    """The schedules find by SQL alone what the messages would have told."""
    _, path = await pipeline.subscribe("a.purged", "/ok")
    pipeline.weather.change = lambda _: []
    events = [await pipeline.post("a.purged", number) for number in range(20)]
    await until(lambda: len(pipeline.sagas("a.purged")) == 20, "the tick has routed them")
    await until(
        lambda: states(pipeline, "a.purged") == {"InProgress": FIRST_LIMIT, "Pending": 20 - FIRST_LIMIT},
        "the tick has started as many as there is room for",
    )
    await pipeline.purge()
    pipeline.weather.clear()
    assert await pipeline.until_ended("a.purged", 20) == {"Completed": 20}
    assert pipeline.requests_per_event(path) == dict.fromkeys(events, 1)


@pytest.mark.guarantee(Promise.QUEUES, "a delivery killed during its POST")
async def test_a_delivery_killed_during_its_post_is_done_again(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.killed", "/slow/1000")
    event_id = await pipeline.post("a.killed")
    await until(lambda: pipeline.received(path), "the POST is in progress")
    kill_busy(pipeline.system.functions["delivery"])
    for column in ("lease_until = now() - interval '1 second'", "created_at = now() - interval '1 minute'"):
        pipeline.rewrite(f"UPDATE webhook_delivery_jobs SET {column} WHERE status = 'Leased'")  # type: ignore[arg-type]
    assert await pipeline.until_ended("a.killed", 1) == {"Completed": 1}
    assert pipeline.requests_per_event(path) == {event_id: 2}
    (job,) = pipeline.rows(
        "SELECT j.* FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas s ON s.id = j.saga_id"
        " WHERE s.id = %s",
        pipeline.sagas("a.killed")[0]["id"],
    )
    assert (job["claim_count"], job["attempt_number"], job["status"]) == (2, 1, "Completed")


@pytest.mark.guarantee(Promise.ALONE, "malformed and foreign messages among good ones")
async def test_malformed_messages_among_good_ones_are_deleted_alone(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.malformed", "/ok")
    bodies = ["x", "{}", "[]", '{"event_id": 1, "saga_id": 1, "job_id": 1, "v": 2}', "\ud7ff" * 1000]
    pipeline.weather.change = lambda batch: [
        [*({**message, "Body": body} for message, body in zip(batch * 5, bodies, strict=False)), *batch]
    ]
    events = [await pipeline.post("a.malformed", number) for number in range(9)]
    for queue in ID_QUEUES:
        await pipeline.system.sqs.send(pipeline.system.queues.work[queue], *bodies)
    assert await pipeline.until_ended("a.malformed", 9) == {"Completed": 9}
    assert pipeline.requests_per_event(path) == dict.fromkeys(events, 1)


@pytest.mark.guarantee(Promise.ALONE, "one subscription of ten whose secret cannot be read")
async def test_a_poisoned_subscription_among_nine_good_ones_dies_alone(pipeline: Pipeline) -> None:
    good = [await pipeline.subscribe("a.poisoned", "/ok") for _ in range(9)]
    poisoned, path = await pipeline.subscribe("a.poisoned", "/ok")
    pipeline.rewrite(
        "UPDATE subscription_secrets SET secret = 'unreadable' WHERE subscription_id = %s", poisoned
    )
    await pipeline.post("a.poisoned")
    assert await pipeline.until_ended("a.poisoned", 10) == {"Completed": 9, "DeadLettered": 1}
    assert [len(pipeline.received(one)) for _, one in good] == [1] * 9
    assert pipeline.received(path) == []
    (dead,) = (await pipeline.call("GET", f"/v1/dead-letters?subscription_id={poisoned}"))["items"]
    assert dead["final_error_code"] == "internal_error"


@pytest.mark.guarantee(Promise.QUEUES, "the database closed to the delivery function")
async def test_messages_come_back_while_the_database_is_away_and_nothing_is_sent_twice(
    pipeline: Pipeline,
) -> None:
    _, path = await pipeline.subscribe("a.database", "/ok")
    before = len(batches(pipeline, "delivery"))
    async with pipeline.database_closed_to(Role.DELIVERY):
        events = [await pipeline.post("a.database", number) for number in range(10)]

        def all_failed() -> bool:
            failed = [one for one in batches(pipeline, "delivery")[before:] if one.kept]
            return sum(len(one.message_ids) for one in failed) > 10

        await until(all_failed, "the whole batch has come back, and has failed again")
        assert all(one.kept == set(one.message_ids) for one in batches(pipeline, "delivery")[before:]), (
            "a batch in which all failed reports all"
        )
        assert await pipeline.depth("delivery") >= 10
    assert await pipeline.until_ended("a.database", 10) == {"Completed": 10}
    assert pipeline.requests_per_event(path) == dict.fromkeys(events, 1)


@pytest.mark.guarantee(Promise.QUEUES, "a result that could not be written")
async def test_a_result_that_could_not_be_written_keeps_its_message(pipeline: Pipeline) -> None:
    """The receiver said 200, then the database went away: one more request, never a lost or a false state."""
    _, path = await pipeline.subscribe("a.unwritten", "/slow/1000")
    event_id = await pipeline.post("a.unwritten")
    await until(lambda: pipeline.received(path), "the POST is in progress")
    before = len(batches(pipeline, "delivery"))
    async with pipeline.database_closed_to(Role.DELIVERY):
        await until(
            lambda: any(one.kept for one in batches(pipeline, "delivery")[before:]), "the write has failed"
        )
    for column in ("lease_until = now() - interval '1 second'", "created_at = now() - interval '1 minute'"):
        pipeline.rewrite(f"UPDATE webhook_delivery_jobs SET {column} WHERE status = 'Leased'")  # type: ignore[arg-type]
    assert await pipeline.until_ended("a.unwritten", 1) == {"Completed": 1}
    assert pipeline.requests_per_event(path) == {event_id: 2}


@pytest.mark.guarantee(Promise.QUEUES, "a receiver that is down: nothing in a redrive queue")
async def test_a_receiver_that_is_down_costs_no_message(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.receiver", "/down", base_delay_seconds=60, max_retry_limit=3)
    before = len(batches(pipeline, "delivery"))
    await pipeline.post("a.receiver")
    await until(
        lambda: [saga["status"] for saga in pipeline.sagas("a.receiver")] == ["PendingRetry"],
        "the failure is recorded",
    )
    (handled,) = await until(lambda: batches(pipeline, "delivery")[before:], "the delivery has answered")
    assert handled.kept == set()
    pipeline.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() WHERE status = 'PendingRetry'"
    )
    pipeline.receiver.fix(path)
    assert await pipeline.until_ended("a.receiver", 1) == {"Completed": 1}
    await pipeline.purge()  # the wake of the 60 s is still on its way


async def test_a_retry_wakes_itself_when_it_is_due(pipeline: Pipeline) -> None:
    """Without the schedule: the delayed message alone."""
    await pipeline.system.schedules["orchestrator"].stop()
    _, path = await pipeline.subscribe("a.due", "/flaky/1", base_delay_seconds=2)
    await pipeline.post("a.due")
    try:
        assert await pipeline.until_ended("a.due", 1) == {"Completed": 1}
    finally:
        pipeline.system.schedules["orchestrator"].start()
    first, second = pipeline.received(path)
    assert 2 <= second.arrived_at - first.arrived_at < 6


async def test_a_death_is_announced(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.dead", "/down")
    event_id = await pipeline.post("a.dead", {"n": 1})
    assert await pipeline.until_ended("a.dead", 1) == {"DeadLettered": 1}
    (saga,) = pipeline.sagas("a.dead")
    announced: list[dict[str, object]] = []

    async def found() -> bool:
        messages = await pipeline.system.sqs.receive(pipeline.system.queues.dead_tasks, 10, 1)
        announced.extend(json.loads(message["Body"]) for message in messages)
        return any(one["sagaId"] == saga["id"] for one in announced)

    await until(found, "the DeadTaskEvent")
    (event,) = [one for one in announced if one["sagaId"] == saga["id"]]
    assert (event["eventId"], event["attemptCount"], event["maxAttempts"]) == (event_id, 2, 2)
    assert event["errorCode"] == "http_503"
    assert len(pipeline.received(path)) == 2


async def test_a_gone_endpoint_and_a_death_are_told_by_the_monitors_tick(pipeline: Pipeline) -> None:
    _, heard = await pipeline.subscribe("hooksaga.subscription.disabled", "/ok")
    _, mourned = await pipeline.subscribe("hooksaga.delivery.dead_lettered", "/ok")
    gone, _ = await pipeline.subscribe("a.gone", "/status/410")
    await pipeline.post("a.gone")
    (told,) = await until(lambda: pipeline.received(heard), "the news of the endpoint")
    assert (told.signature, json.loads(told.body)["data"]["subscription_id"]) == (Signature.GOOD, gone)
    assert await pipeline.until_ended("a.gone", 1) == {"DeadLettered": 1}
    await until(lambda: pipeline.received(mourned), "the news of the dead letter")
    shown = await pipeline.call("GET", f"/v1/subscriptions/{gone}")
    assert not shown["active"]
    await pipeline.purge()  # the wake of the retry may still be on its way


@pytest.mark.guarantee(Promise.QUEUES, "the queue of dead tasks gone")
async def test_a_death_without_its_queue_is_recorded_all_the_same(pipeline: Pipeline) -> None:
    await pipeline.subscribe("a.unheard", "/down")
    queues = pipeline.system.queues
    await pipeline.system.sqs.call("DeleteQueue", QueueUrl=queues.dead_tasks)
    await pipeline.post("a.unheard")
    assert await pipeline.until_ended("a.unheard", 1) == {"DeadLettered": 1}
    await until(
        lambda: "DeadTaskEventPublishFailed" in pipeline.system.functions["orchestrator"].log(),
        "it is logged",
    )
    await pipeline.until_quiet()
    await pipeline.system.sqs.create_queue(queues.dead_tasks.rpartition("/")[2])


async def test_a_requeued_dead_letter_and_a_cancel_travel_by_queue(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("a.again", "/down")
    event_id = await pipeline.post("a.again")
    await pipeline.until_ended("a.again", 1)
    pipeline.receiver.fix(path)
    done = await pipeline.call("POST", "/v1/dead-letters/requeue", json={"event_type": "a.again"})
    assert (done["matched"], done["requeued"]) == (1, 1)
    assert await pipeline.until_ended("a.again", 2) == {"DeadLettered": 1, "Completed": 1}
    assert pipeline.requests_per_event(path) == {event_id: 3}

    await pipeline.subscribe("a.canceled", "/down/again", base_delay_seconds=600)
    await pipeline.post("a.canceled")
    await until(
        lambda: [saga["status"] for saga in pipeline.sagas("a.canceled")] == ["PendingRetry"], "it waits"
    )
    (saga,) = pipeline.sagas("a.canceled")
    admin = pipeline.system.functions["admin"]
    outcome = await admin.invoke({"method": "POST", "path": f"/v1/sagas/{saga['id']}/cancel"})
    assert outcome.payload["status"] == 202
    assert json.loads(outcome.payload["body"]) == {"saga_id": saga["id"], "status": "PendingRetry"}
    assert await pipeline.until_ended("a.canceled", 1) == {"DeadLettered": 1}
    assert pipeline.sagas("a.canceled")[0]["final_error_code"] == "canceled"
    await pipeline.purge()


async def test_a_bulk_requeue_goes_on_by_ticks_and_each_saga_starts_when_it_is_due(
    pipeline: Pipeline,
) -> None:
    """Without the orchestrator's schedule: the delayed messages alone."""
    subscription, path = await pipeline.subscribe("a.bulk", "/down")
    events = [await pipeline.post("a.bulk") for _ in range(4)]  # too few failures to open the circuit breaker
    await pipeline.until_ended("a.bulk", 4)
    pipeline.receiver.fix(path)
    before = len(pipeline.received(path))
    await pipeline.system.schedules["orchestrator"].stop()
    wanted = {"kind": "requeue", "filter": {"event_type": "a.bulk"}, "rate_per_second": 2}
    try:
        operation = await pipeline.call("POST", "/v1/bulk-operations", json=wanted)
        assert await pipeline.until_ended("a.bulk", 8) == {"DeadLettered": 4, "Completed": 4}
    finally:
        pipeline.system.schedules["orchestrator"].start()
    done = await pipeline.call("GET", f"/v1/bulk-operations/{operation['id']}")
    assert (done["status"], done["matched"], done["done"]) == ("Completed", 4, 4)
    assert sorted(one.webhook_id for one in pipeline.received(path)[before:]) == sorted(events)
    assert pipeline.seconds_of_starts(subscription) >= 1
