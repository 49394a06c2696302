"""Queues wake functions as Lambda's event source mapping does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from hooksaga.local.sqs.event_source import (
    InvalidMapping,
    QueueMapping,
    QueueSource,
    Schedule,
    check_mapping,
)
from hooksaga.local.sqs.sqs_api import SqsApi, SqsError
from tests.sqs.conftest import NewFunction, new_name, until

pytestmark = pytest.mark.sqs

Start = Callable[..., Awaitable[tuple[QueueSource, str]]]


@pytest.fixture
async def start(sqs: SqsApi, new_function: NewFunction) -> AsyncIterator[Start]:
    """Starts a source on a new queue, with messages in it already."""
    started: list[QueueSource] = []

    async def begin(
        *bodies: str, queue: dict[str, Any] | None = None, concurrency: int = 2, **mapping: Any
    ) -> tuple[QueueSource, str]:
        url = await sqs.create_queue(new_name("work"), **{"VisibilityTimeout": 1, **(queue or {})})
        await sqs.send(url, *bodies)
        function = new_function("take_batch", timeout_seconds=1, concurrency=concurrency)
        await function.warm_up()
        source = QueueSource(sqs, QueueMapping(url, **mapping), function)
        await source.start()
        started.append(source)
        return source, url

    yield begin
    for source in started:
        await source.stop()


async def test_a_record_has_the_shape_of_aws(sqs: SqsApi, start: Start) -> None:
    source, url = await start()
    await sqs.call(
        "SendMessage",
        QueueUrl=url,
        MessageBody="hello",
        MessageGroupId="17",
        MessageAttributes={"kind": {"DataType": "String", "StringValue": "x"}},
    )
    (handled,) = await until(lambda: source.handled, "the batch is handled")
    (record,) = handled.outcome.payload["records"]
    attributes = record.pop("attributes")
    assert {name: record.pop(name) for name in ("body", "md5OfBody", "eventSource", "awsRegion")} == {
        "body": "hello",
        "md5OfBody": "5d41402abc4b2a76b9719d911017c592",
        "eventSource": "aws:sqs",
        "awsRegion": "us-east-1",
    }
    assert record.pop("messageAttributes") == {
        "kind": {"stringValue": "x", "stringListValues": [], "binaryListValues": [], "dataType": "String"}
    }
    assert record.pop("eventSourceARN") == (await sqs.attributes(url))["QueueArn"]
    assert record.pop("messageId") == handled.message_ids[0]
    assert set(record) == {"receiptHandle"}
    assert attributes["ApproximateReceiveCount"] == "1"
    assert attributes["MessageGroupId"] == "17"
    assert attributes["SentTimestamp"].isdigit()


async def test_good_messages_are_deleted_and_kept_ones_come_back_until_the_redrive_queue(
    sqs: SqsApi, start: Start
) -> None:
    redrive = await sqs.create_queue(new_name("redrive"))
    target = (await sqs.attributes(redrive))["QueueArn"]
    policy = {"deadLetterTargetArn": target, "maxReceiveCount": 2}
    source, url = await start("good", "keep", "good", queue={"RedrivePolicy": policy})
    (message,) = await until(lambda: sqs.receive(redrive), "the message that failed is in the redrive queue")
    assert message["Body"] == "keep"
    assert await sqs.depth(url) == 0
    counts = [
        (record["body"], record["attributes"]["ApproximateReceiveCount"])
        for handled in source.handled
        for record in handled.outcome.payload["records"]
    ]
    assert sorted(counts) == [("good", "1"), ("good", "1"), ("keep", "1"), ("keep", "2")]


@pytest.mark.parametrize(
    "body", ["raise", 'answer {"batchItemFailures": [{"itemIdentifier": "no-such-id"}]}']
)
async def test_a_batch_that_fails_as_a_whole_comes_back_as_a_whole(
    start: Start, sqs: SqsApi, body: str
) -> None:
    source, url = await start("good", body)
    first = (await until(lambda: source.handled, "the batch is handled"))[0]
    assert first.kept == set(first.message_ids)
    await until(lambda: len(source.handled) >= 2, "the batch comes back")
    assert await sqs.depth(url) == 2


async def test_a_window_collects_more_than_one_receive_can(start: Start) -> None:
    source, _ = await start(*["good"] * 25, batch_size=25, window_seconds=1)
    await until(lambda: sum(len(one.message_ids) for one in source.handled) == 25, "all are handled")
    assert [len(one.message_ids) for one in source.handled] == [25]


async def test_a_window_ends(start: Start, sqs: SqsApi) -> None:
    source, url = await start("good", batch_size=100, window_seconds=0.3)
    await until(lambda: source.handled, "the window is over")
    await sqs.send(url, "good")
    await until(lambda: len(source.handled) == 2, "a later message is another batch")


async def test_the_mapping_bounds_the_concurrency(start: Start) -> None:
    source, _ = await start(*["good"] * 8, batch_size=1, maximum_concurrency=2, concurrency=5)
    await until(lambda: len(source.handled) == 8, "all are handled")
    assert len({handled.outcome.pid for handled in source.handled}) <= 2


ATTRIBUTES = {"VisibilityTimeout": "30"}


@pytest.mark.parametrize(
    ("mapping", "timeout_seconds", "reason"),
    [
        ({}, 31, "Queue visibility timeout: 30 seconds is less than Function timeout: 31 seconds"),
        ({"batch_size": 11}, 3, "batch window in seconds must be greater than 0"),
        ({"batch_size": 0}, 3, "BatchSize"),
        ({"batch_size": 10_001, "window_seconds": 1}, 3, "BatchSize"),
        ({"window_seconds": 301}, 3, "MaximumBatchingWindowInSeconds"),
        ({"maximum_concurrency": 1}, 3, "MaximumConcurrency"),
    ],
)
def test_a_mapping_that_aws_refuses_is_refused(
    mapping: dict[str, Any], timeout_seconds: float, reason: str
) -> None:
    with pytest.raises(InvalidMapping, match=reason):
        check_mapping(QueueMapping("url", **mapping), timeout_seconds, ATTRIBUTES)


async def test_a_delay_over_fifteen_minutes_is_refused(sqs: SqsApi) -> None:
    url = await sqs.create_queue(new_name("delayed"))
    with pytest.raises(SqsError, match="DelaySeconds"):
        await sqs.send(url, "later", delay_seconds=901)
    with pytest.raises(SqsError, match="DelaySeconds"):
        await sqs.create_queue(new_name("delayed"), DelaySeconds=901)
    with pytest.raises(SqsError, match=r"QueueDoesNotExist|NonExistentQueue"):
        await sqs.attributes(url + "-not")


async def test_a_schedule_ticks_with_the_event_of_a_rule(new_function: NewFunction) -> None:
    function = new_function(environment={})
    schedule = Schedule(function, every_seconds=0.2)
    schedule.start()
    await until(lambda: len(schedule.outcomes) >= 2, "two ticks")
    await schedule.stop()
    assert schedule.outcomes[0].error is not None, "the probe does not know such an event, and says so"
    ticks = len(schedule.outcomes)
    await asyncio.sleep(0.5)
    assert len(schedule.outcomes) == ticks


async def test_each_poller_gathers_a_batch_of_its_own(start: Start) -> None:
    """One poller would gather all twenty, each time. On a busy machine it may happen that the other begins too late."""
    options = {"queue": {"VisibilityTimeout": 60}, "batch_size": 20, "window_seconds": 1, "pollers": 2}
    batches: list[int] = []
    while 2 not in batches and len(batches) < 5:
        source, _ = await start(*["good"] * 20, **options)
        await until(
            lambda source=source: sum(len(one.message_ids) for one in source.handled) == 20, "all are handled"
        )
        batches.append(len(source.handled))
    assert batches[-1] == 2
