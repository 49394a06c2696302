"""The queue lies: it delays, forgets, refuses, repeats, and carries what is not ours. Everything arrives all the same.

A POST happens once for each attempt, whatever the queue says: only the row of a job decides who may send it.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hooksaga.local.sqs.queue_set import ID_QUEUES
from tests.faults.crash_points import FaultFolder
from tests.faults.promises import IN_FULL, Promise, RecordProperty, tried
from tests.faults.sabotage import VARIABLE, passed_on
from tests.sqs.conftest import until
from tests.sqs.lying_queue import Lies, LyingQueue
from tests.sqs.running_pipeline import VISIBILITY_SECONDS, Pipeline, running_pipeline

pytestmark = [
    pytest.mark.faults,
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.timeout(420),
    pytest.mark.asyncio(loop_scope="module"),
]

EVENTS = 40 if IN_FULL else 10
ENDED_WITHIN_SECONDS = 20 if VARIABLE in os.environ else 300
"""An endpoint that answers 503 gets one POST at a time, each of which may wait for a delayed message."""
MAX_BODY = 262_144


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def liar(sqs_endpoint: str) -> AsyncIterator[LyingQueue]:
    liar = LyingQueue(sqs_endpoint)
    await liar.start()
    yield liar
    await liar.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    module_database: str, liar: LyingQueue, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("lied-to")
    options = {"environment": {**FaultFolder(folder / "faults").environment, **passed_on()}}
    async with running_pipeline(folder, module_database, liar.url, options) as pipeline:
        yield pipeline


@pytest_asyncio.fixture(loop_scope="module")
async def pipeline(running: Pipeline, liar: LyingQueue) -> AsyncIterator[Pipeline]:
    """After each test the queue is honest again, no message is left, the redrive queues are empty, the audit clean."""
    yield running
    liar.lies.be_honest()
    await running.until_quiet()


async def pass_events(
    pipeline: Pipeline, kind: str, meanwhile: Callable[[], Any] | None = None
) -> dict[str, Any]:
    """Events for a good and a flaky receiver, posted over a while; the requests that each receiver got per event."""
    _, good = await pipeline.subscribe(kind, "/ok")
    _, flaky = await pipeline.subscribe(kind, "/flaky/1")
    events: list[str] = []
    for number in range(EVENTS):
        events.append(await pipeline.post(kind, number))
        if meanwhile is not None:
            await meanwhile()
    await until_delivered(pipeline, kind, 2 * EVENTS)
    assert pipeline.requests_per_event(good) == dict.fromkeys(events, 1)
    assert pipeline.requests_per_event(flaky) == dict.fromkeys(events, 2)
    return {"events": events, "paths": (good, flaky)}


async def until_delivered(pipeline: Pipeline, kind: str, count: int) -> None:
    """Jobs that no queue took are looked for once they are 30 s old; here they grow old sooner."""

    def all_are() -> bool:
        pipeline.rewrite(
            "UPDATE webhook_delivery_jobs SET created_at = created_at - interval '1 minute' WHERE status = 'Pending' "
            "AND dispatched_at IS NULL AND now() - created_at BETWEEN interval '2 seconds' AND interval '30 seconds'"
        )
        return [saga["status"] for saga in pipeline.sagas(kind)] == ["Completed"] * count

    await until(all_are, f"{count} sagas of {kind} are Completed", ENDED_WITHIN_SECONDS)


LIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "delayed": ("a message delayed", {"delayed": 0.5, "longest_delay": 5}, False),
    "failed": ("an entry failed in an answer of 200", {"failed": 0.4}, True),
    "slandered": ("an entry sent, and called failed", {"falsely_failed": 0.4}, False),
    "whole-batches": ("an entry failed in an answer of 200", {"whole_batches_failed": 0.6}, False),
    "refused": ("a call refused", {"refused": 0.3}, False),
    "exaggerated": ("a message said to have come before", {"receive_count": 1000}, False),
}
"""By the names that pytest calls them: the lie that is counted, the settings, and whether `make test` tries it."""

PURGED = "a queue purged at a random moment under load"
WORDS = {
    "delayed": "half of all messages delayed by 1 to 5 s more",
    "failed": "SendMessageBatch answers 200, and two entries in five failed",
    "slandered": "two entries in five sent, and called failed",
    "whole-batches": "SendMessageBatch answers 200, and in three batches of five every entry failed",
    "refused": "three calls in ten answered by 503 or a reset, those of the event source too",
    "exaggerated": "every message said to have been received 1000 times",
}


@pytest.mark.guarantees(Promise.QUEUES, *WORDS.values())
@pytest.mark.parametrize("name", [name for name, (_, _, is_quick) in LIES.items() if is_quick or IN_FULL])
async def test_everything_arrives_though_the_queue_lies(
    pipeline: Pipeline, liar: LyingQueue, name: str, record_property: RecordProperty
) -> None:
    lie, settings, _ = LIES[name]
    before = liar.lies.told[lie]
    set_lies(liar.lies, settings)
    await pass_events(pipeline, f"lie.{name}")
    times = liar.lies.told[lie] - before
    assert times > 0
    tried(record_property, Promise.QUEUES, WORDS[name], "arrived, one POST per attempt", times=times)


def set_lies(lies: Lies, settings: dict[str, Any]) -> None:
    for setting, value in settings.items():
        assert hasattr(lies, setting)
        setattr(lies, setting, value)


@pytest.mark.guarantees(Promise.QUEUES, PURGED)
async def test_queues_purged_at_random_under_load(
    pipeline: Pipeline, record_property: RecordProperty
) -> None:
    chance, purged = random.Random(20_261_130), 0

    async def purge_one() -> None:
        nonlocal purged
        if chance.random() < 0.5:
            url = pipeline.system.queues.work[chance.choice(ID_QUEUES)]
            await pipeline.system.sqs.call("PurgeQueue", QueueUrl=url)
            purged += 1

    await pass_events(pipeline, "lie.purged", purge_one)
    tried(
        record_property,
        Promise.QUEUES,
        PURGED,
        "arrived, one POST per attempt",
        times=purged,
    )


@pytest.mark.skipif(not IN_FULL, reason="long: make faults")
@pytest.mark.guarantee(
    Promise.QUEUES, "every call to the queues refused for 4 s under load", "arrived, one POST per attempt"
)
async def test_queues_that_refuse_everything_for_a_while(pipeline: Pipeline, liar: LyingQueue) -> None:
    started = time.monotonic()

    async def refuse() -> None:
        liar.lies.refused = 1.0 if time.monotonic() - started < 4 else 0.0

    _, good = await pipeline.subscribe("lie.away", "/ok")
    events: list[str] = []
    while time.monotonic() - started < 6:
        await refuse()
        events.append(await pipeline.post("lie.away"))
    await until_delivered(pipeline, "lie.away", len(events))
    assert pipeline.requests_per_event(good) == dict.fromkeys(events, 1)


@pytest.mark.guarantee(
    Promise.QUEUES,
    "a message that comes again and again during its slow POST, its visibility over",
    "one POST",
)
async def test_a_message_that_comes_again_during_its_post(pipeline: Pipeline) -> None:
    handled = pipeline.system.sources["delivery"].handled
    before = len(handled)
    milliseconds = (2 * VISIBILITY_SECONDS + 1) * 1000
    _, path = await pipeline.subscribe("lie.visible", f"/slow/{milliseconds}/visible")
    event = await pipeline.post("lie.visible")
    await until(lambda: pipeline.received(path), "the POST is in progress")
    await until(lambda: len(handled) > before, "the message has come again, and was let go")
    assert pipeline.sagas("lie.visible")[0]["status"] == "InProgress"
    assert await pipeline.until_ended("lie.visible", 1) == {"Completed": 1}
    assert pipeline.requests_per_event(path) == {event: 1}


STATE = """
    SELECT (SELECT json_agg(s ORDER BY s.id) FROM webhook_delivery_sagas s)::text AS sagas,
           (SELECT json_agg(j ORDER BY j.id) FROM webhook_delivery_jobs j)::text AS jobs,
           (SELECT count(*) FROM dead_letters) AS letters, (SELECT count(*) FROM routing_outbox) AS outbox"""


@pytest.mark.guarantee(
    Promise.QUEUES,
    "messages for events, sagas and jobs that do not exist, or ended long ago",
    "deleted; no row changed and nothing was sent",
)
async def test_messages_for_what_is_not_there_or_long_ended(pipeline: Pipeline) -> None:
    passed = await pass_events(pipeline, "lie.ended")
    await pipeline.until_quiet()
    (before,) = pipeline.rows(STATE)
    rows = pipeline.rows(
        "SELECT j.id AS job_id, j.saga_id, s.subscription_id, s.event_id FROM webhook_delivery_jobs j "
        "JOIN webhook_delivery_sagas s ON s.id = j.saga_id"
    )
    absent = [
        {**dict.fromkeys(("job_id", "saga_id", "subscription_id"), 10**12 + n), "event_id": (2**63 - 1) - n}
        for n in range(10)
    ]
    for row in [*rows[:30], *absent]:
        await send_all(pipeline, row)
    await pipeline.until_quiet()
    assert pipeline.rows(STATE) == [before]
    good, flaky = passed["paths"]
    assert (len(pipeline.received(good)), len(pipeline.received(flaky))) == (EVENTS, 2 * EVENTS)


async def send_all(pipeline: Pipeline, row: dict[str, int]) -> None:
    """Every message that could name the row, a pair that does not belong together among them."""
    urls, sqs = pipeline.system.queues.work, pipeline.system.sqs
    await sqs.send(urls["routing"], json.dumps({"event_id": row["event_id"]}))
    for field in ("subscription_id", "job_id"):
        await sqs.send(urls["orchestration"], json.dumps({field: row[field]}))
    await sqs.send(urls["orchestration"], json.dumps({"cancel_saga_id": row["saga_id"]}))
    for queue in ("delivery", "delivery-slow"):
        for saga_id in (row["saga_id"], 1):
            await sqs.send(urls[queue], json.dumps({"job_id": row["job_id"], "saga_id": saga_id}))


GARBAGE = (
    "[" * MAX_BODY,
    '{"job_id":' * (MAX_BODY // 10),
    '{"event_id": ' + "9" * (MAX_BODY - 20) + "}",
    '{"subscription_id": -1}',
    '{"subscription_id": 1e3}',
    '{"job_id": 9223372036854775808, "saga_id": 1}',
    '{"job_id": true, "saga_id": 1}',
    "\u20ac" * (MAX_BODY // 3),
    json.dumps({"Type": "Notification", "MessageId": "1", "Message": json.dumps({"event_id": 1})}),
    json.dumps({"Records": [{"eventSource": "aws:s3", "s3": {"object": {"key": "x" * 1000}}}]}),
    json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent"}),
    "null",
    '"x"',
)


@pytest.mark.guarantee(
    Promise.ALONE, "256 KB of garbage, and foreign JSON, in every queue among good messages", "deleted alone"
)
async def test_garbage_and_foreign_json_are_deleted_alone(pipeline: Pipeline) -> None:
    urls = [pipeline.system.queues.work[queue] for queue in ID_QUEUES]  # the intake sets such messages aside

    async def litter() -> None:
        for url in urls:
            await pipeline.system.sqs.send(url, *GARBAGE[len(sent) % len(GARBAGE) :][:2])
        sent.append(1)

    sent: list[int] = []
    await asyncio.gather(*(pipeline.system.sqs.send(url, *GARBAGE) for url in urls))
    await pass_events(pipeline, "lie.garbage", litter)
