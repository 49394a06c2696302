"""From an EventBridge rule, an SNS topic and an SQS producer to a TLS receiver, through the queue `intake`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import pytest_asyncio

from hooksaga.local.receiver_journal import Signature
from tests.sqs.conftest import new_name, until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

SETTINGS: dict[str, Any] = {
    "intake_ordering_key": "{/detail/order}",
    "intake_attributes": "country=/detail/country",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("intake")
    async with running_pipeline(folder, module_database, sqs_endpoint, **SETTINGS) as pipeline:
        yield pipeline


@pytest_asyncio.fixture(loop_scope="module")
async def pipeline(running: Pipeline) -> AsyncIterator[Pipeline]:
    """After each test nothing is left in any queue, and the audit is clean."""
    yield running
    running.weather.clear()
    await running.until_quiet()


class Sources:
    """Services of the emulator that send to the queue."""

    def __init__(self, endpoint: str, pipeline: Pipeline) -> None:
        self._endpoint = endpoint
        self.queue_url = pipeline.system.queues.work["intake"]
        self.redrive_url = pipeline.system.queues.redrive["intake"]
        self.sqs = self._client("sqs")

    def _client(self, service: str) -> Any:
        return boto3.client(  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
            service,  # pyright: ignore[reportArgumentType]
            endpoint_url=self._endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def arn(self, url: str) -> str:
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return found["Attributes"]["QueueArn"]

    def put_event(self, source: str, detail_type: str, detail: Any, **target: Any) -> None:
        """Put an event on the default bus, with a rule for its source whose target is the queue."""
        events, rule = self._client("events"), new_name("rule")
        events.put_rule(Name=rule, EventPattern=json.dumps({"source": [source]}))
        targets = [{"Id": "intake", "Arn": self.arn(self.queue_url), **target}]
        assert events.put_targets(Rule=rule, Targets=targets)["FailedEntryCount"] == 0
        entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail)}
        assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0
        events.remove_targets(Rule=rule, Ids=["intake"])
        events.delete_rule(Name=rule)

    def publish(self, message: str, *, raw: bool = False, **attributes: str) -> str:
        """Publish to a new topic to which the queue is subscribed; return the topic."""
        sns = self._client("sns")
        topic = sns.create_topic(Name=new_name("topic"))["TopicArn"]
        sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=self.arn(self.queue_url),
            Attributes={"RawMessageDelivery": "true"} if raw else {},
        )
        given = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        sns.publish(TopicArn=topic, Message=message, MessageAttributes=given)
        return topic

    def send(self, body: str, **attributes: str) -> None:
        given = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body, MessageAttributes=given)

    def set_aside(self, count: int) -> list[dict[str, Any]]:
        """The messages of the redrive queue, which stay there, once there are so many."""
        found = self.sqs.receive_message(
            QueueUrl=self.redrive_url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        )
        messages = found.get("Messages", [])
        return messages if len(messages) == count else []

    def move_back(self, messages: list[dict[str, Any]]) -> None:
        """As StartMessageMoveTask does, which the emulator does not have."""
        for one in messages:
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=one["Body"],
                MessageAttributes=one["MessageAttributes"],
            )
            self.sqs.delete_message(QueueUrl=self.redrive_url, ReceiptHandle=one["ReceiptHandle"])


@pytest.fixture
def sources(sqs_endpoint: str, pipeline: Pipeline) -> Sources:
    return Sources(sqs_endpoint, pipeline)


async def test_an_event_of_a_rule_reaches_a_receiver(pipeline: Pipeline, sources: Sources) -> None:
    _, path = await pipeline.subscribe("Order_Created", "/ok", filter={"country": ["DE"]}, ordered=True)
    sources.put_event("shop.orders", "Order Created", {"order": 1001, "country": "DE"})
    assert await pipeline.until_ended("Order_Created", 1) == {"Completed": 1}
    (received,) = pipeline.received(path)
    assert received.signature is Signature.GOOD
    assert json.loads(received.body) == {"order": 1001, "country": "DE"}
    (event,) = pipeline.rows("SELECT * FROM events WHERE event_type = 'Order_Created'")
    assert (event["source"], event["ordering_key"]) == ("shop.orders", "1001")
    assert event["attributes"] == {"country": "DE"}


async def test_an_input_transformer_makes_a_hooksaga_event(pipeline: Pipeline, sources: Sources) -> None:
    """As docs/intake.md says: without any setting, each rule can name type, tenant and key."""
    _, path = await pipeline.subscribe("invoice.paid", "/ok")
    template = (
        '{"event_type": "invoice.paid", "tenant_id": "default", "idempotency_key": <id>, "payload": <detail>}'
    )
    transformer = {"InputPathsMap": {"id": "$.id", "detail": "$.detail"}, "InputTemplate": template}
    sources.put_event("shop.billing", "Paid", {"invoice": 7}, InputTransformer=transformer)
    assert await pipeline.until_ended("invoice.paid", 1) == {"Completed": 1}
    assert [json.loads(one.body) for one in pipeline.received(path)] == [{"invoice": 7}]


@pytest.mark.parametrize("raw", [False, True], ids=["wrapped", "raw"])
async def test_a_message_of_a_topic_reaches_a_receiver(
    pipeline: Pipeline, sources: Sources, raw: bool
) -> None:
    event_type = f"sns.{raw}"
    _, path = await pipeline.subscribe(event_type, "/ok", filter={"country": ["DE"]})
    topic = sources.publish('{"total": 1.10}', raw=raw, event_type=event_type, country="DE")
    assert await pipeline.until_ended(event_type, 1) == {"Completed": 1}
    (received,) = pipeline.received(path)
    assert (received.body, received.signature) == ('{"total": 1.10}', Signature.GOOD)
    (event,) = pipeline.rows("SELECT source FROM events WHERE event_type = %s", event_type)
    assert event["source"] == (sources.arn(sources.queue_url) if raw else topic)


async def test_messages_of_a_producer_reach_a_receiver_once_though_each_comes_twice(
    pipeline: Pipeline, sources: Sources
) -> None:
    _, path = await pipeline.subscribe("a.sent", "/ok")
    pipeline.weather.change = lambda batch: [batch, [*batch, *batch]]
    cloud_event = {"specversion": "1.0", "source": "/shop", "type": "a.sent"}
    sources.send(json.dumps({**cloud_event, "id": "1", "data": 1}))
    sources.send(json.dumps([{**cloud_event, "id": "2", "data": 2}, {**cloud_event, "id": "3", "data": 3}]))
    sources.send(json.dumps({"event_type": "a.sent", "payload": 4}))
    sources.send(json.dumps({"items": [{"event_type": "a.sent", "payload": number} for number in (5, 6)]}))
    sources.send("7", event_type="a.sent")
    assert await pipeline.until_ended("a.sent", 7) == {"Completed": 7}
    assert sorted(json.loads(one.body) for one in pipeline.received(path)) == [1, 2, 3, 4, 5, 6, 7]


async def test_a_poisoned_message_stops_no_neighbour_and_can_be_moved_back(
    pipeline: Pipeline, sources: Sources
) -> None:
    """It is moved back once its cause is gone: here the catalogue, which took no events of the type."""
    _, path = await pipeline.subscribe("a.archived", "/ok")
    await pipeline.subscribe("a.good", "/ok")
    await pipeline.call("PUT", "/v1/event-types/a.archived", json={"archived": True})
    for number in range(3):
        sources.send(json.dumps({"event_type": "a.good", "payload": number}))
        sources.send("not json" if number else json.dumps({"event_type": "a.archived", "payload": number}))
    assert await pipeline.until_ended("a.good", 3) == {"Completed": 3}

    set_aside = await until(lambda: sources.set_aside(3), "three messages are set aside")
    reasons = {
        one["Body"]: one["MessageAttributes"]["hooksaga_refusal"]["StringValue"].partition(":")[0]
        for one in set_aside
    }
    assert reasons == {
        "not json": "invalid_json",
        '{"event_type": "a.archived", "payload": 0}': "event_type_archived",
    }
    await pipeline.call("PUT", "/v1/event-types/a.archived", json={})
    sources.move_back(set_aside)
    assert await pipeline.until_ended("a.archived", 1) == {"Completed": 1}
    assert len(pipeline.received(path)) == 1
    await until(lambda: sources.set_aside(2), "the invalid ones are back")
    sources.sqs.purge_queue(QueueUrl=sources.redrive_url)
