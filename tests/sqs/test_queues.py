"""The adapter that sends, against a real SQS API where one can show the case."""

import json
import time
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from hooksaga.adapters import queues as adapter
from hooksaga.adapters.queues import Outgoing, Queue, Queues, sqs_client
from hooksaga.core.messages import DeliveryMessage, SubscriptionMessage
from hooksaga.local.sqs.sqs_api import SqsApi
from tests.sqs.conftest import new_name, until

pytestmark = pytest.mark.sqs


def messages(count: int, **options: Any) -> list[Outgoing]:
    return [
        Outgoing(SubscriptionMessage(subscription_id=number), **options) for number in range(1, count + 1)
    ]


async def received(sqs: SqsApi, url: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def all_there() -> bool:
        found.extend(await sqs.receive(url, 10, 1))
        return len(found) >= count

    await until(all_there, f"{count} messages")
    return found


async def test_more_than_ten_messages_all_arrive_with_their_group(sqs: SqsApi, aws_environment: str) -> None:
    url = await sqs.create_queue(new_name("sent"))
    messages = [
        Outgoing(DeliveryMessage(job_id=number, saga_id=number + 100), group=str(number % 3))
        for number in range(1, 96)
    ]
    sent = await Queues({Queue.DELIVERY: url}).send(Queue.DELIVERY, messages)
    assert (sent.taken, sent.failed) == (list(range(95)), [])
    arrived = await received(sqs, url, 95)
    bodies = sorted((json.loads(one["Body"]) for one in arrived), key=lambda body: body["job_id"])
    assert bodies == [{"job_id": number, "saga_id": number + 100} for number in range(1, 96)]
    groups = {one["Attributes"]["MessageGroupId"] for one in arrived}
    assert groups == {"0", "1", "2"}


async def test_the_trace_goes_beside_the_body_of_its_message(sqs: SqsApi, aws_environment: str) -> None:
    url = await sqs.create_queue(new_name("traced"))
    messages = [
        Outgoing(SubscriptionMessage(subscription_id=number), correlation_id=f"{number:032x}")
        for number in (1, 2)
    ]
    await Queues({Queue.ORCHESTRATION: url}).send(Queue.ORCHESTRATION, messages)
    arrived = await received(sqs, url, 2)
    assert {
        json.loads(one["Body"])["subscription_id"]: one["MessageAttributes"]["correlation_id"]["StringValue"]
        for one in arrived
    } == {1: f"{1:032x}", 2: f"{2:032x}"}


async def test_a_delayed_message_comes_when_it_is_due(sqs: SqsApi, aws_environment: str) -> None:
    url = await sqs.create_queue(new_name("delayed"))
    started = time.monotonic()
    sent = await Queues({Queue.ORCHESTRATION: url}).send(Queue.ORCHESTRATION, messages(1, delay_seconds=2))
    assert sent.taken == [0]
    await received(sqs, url, 1)
    assert time.monotonic() - started >= 1.9


async def test_a_queue_that_is_not_there_takes_nothing(sqs: SqsApi, aws_environment: str) -> None:
    url = await sqs.create_queue(new_name("gone"))
    await sqs.call("DeleteQueue", QueueUrl=url)
    sent = await Queues({Queue.ROUTING: url}).send(Queue.ROUTING, messages(12))
    assert (sent.taken, sorted(sent.failed)) == ([], list(range(12)))


async def test_a_queue_without_a_url_takes_nothing() -> None:
    sent = await Queues({}).send(Queue.DEAD_TASKS, messages(2))
    assert (sent.taken, sent.failed) == ([], [0, 1])


async def test_an_endpoint_that_is_away_is_not_waited_for(
    aws_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    started = time.monotonic()
    sent = await Queues({Queue.ROUTING: "http://127.0.0.1:1/x"}).send(Queue.ROUTING, messages(1))
    assert sent.failed == [0]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [("127.0.0.1", "http://127.0.0.1:4566"), ("127.0.0.1:4570", "http://127.0.0.1:4570")],
)
def test_localstack_host_names_the_endpoint(
    aws_environment: str, monkeypatch: pytest.MonkeyPatch, host: str, endpoint: str
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("LOCALSTACK_HOST", host)
    assert sqs_client().meta.endpoint_url == endpoint


def taken(*ids: str) -> list[dict[str, str]]:
    return [{"Id": one, "MessageId": f"m{one}", "MD5OfMessageBody": "0" * 32} for one in ids]


def failed(*ids: str) -> list[dict[str, Any]]:
    return [{"Id": one, "SenderFault": False, "Code": "InternalError"} for one in ids]


def entries(*ids: str) -> dict[str, Any]:
    bodies = [
        {"Id": one, "MessageBody": SubscriptionMessage(subscription_id=int(one) + 1).model_dump_json()}
        for one in ids
    ]
    return {"QueueUrl": "https://queue", "Entries": bodies}


def stubbed(*answers: tuple[dict[str, Any], list[str], list[str]]) -> Queues:
    """A client that answers with those lists of taken and failed entries, and checks what it is asked.

    No service that runs here fails single entries of a batch at will; AWS does under load.
    """
    client: Any = boto3.client("sqs", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    client.meta.events.unregister("after-call.sqs.SendMessageBatch")  # made-up answers have made-up digests
    stubber = Stubber(client)
    for expected, good, bad in answers:
        stubber.add_response(
            "send_message_batch", {"Successful": taken(*good), "Failed": failed(*bad)}, expected
        )
    stubber.activate()
    return Queues({Queue.ORCHESTRATION: "https://queue"}, lambda: client)


async def test_entries_that_failed_are_sent_once_more_and_alone() -> None:
    queues = stubbed((entries("0", "1", "2"), ["0", "2"], ["1"]), (entries("1"), ["1"], []))
    sent = await queues.send(Queue.ORCHESTRATION, messages(3))
    assert (sent.taken, sent.failed) == ([0, 1, 2], [])


async def test_entries_that_fail_twice_are_told() -> None:
    queues = stubbed((entries("0", "1"), ["0"], ["1"]), (entries("1"), [], ["1"]))
    sent = await queues.send(Queue.ORCHESTRATION, messages(2))
    assert (sent.taken, sent.failed) == ([0], [1])


async def test_a_delay_never_exceeds_what_sqs_takes() -> None:
    expected = entries("0")
    expected["Entries"][0]["DelaySeconds"] = 900
    sent = await stubbed((expected, ["0"], [])).send(Queue.ORCHESTRATION, messages(1, delay_seconds=5000))
    assert sent.taken == [0]


async def test_a_real_service_that_refuses_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto", reason="moto refuses single entries as AWS does")
    monkeypatch.setattr(adapter, "MAX_DELAY_SECONDS", 5000)
    with moto.mock_aws():
        client: Any = boto3.client("sqs", "us-east-1")
        url = client.create_queue(QueueName="strict")["QueueUrl"]
        late, soon = messages(1, delay_seconds=901), messages(2)
        queues = Queues({Queue.ORCHESTRATION: url}, lambda: client)
        sent = await queues.send(Queue.ORCHESTRATION, [soon[0], *late, soon[1]])
    assert (sent.taken, sent.failed) == ([0, 2], [1])
