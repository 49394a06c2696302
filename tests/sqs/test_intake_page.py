"""Every command and program of docs/intake.md runs as it stands, on the emulator, and what it sends is delivered."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
import pytest_asyncio
from botocore.model import Shape, StringShape, StructureShape

from tests.docs.test_operations import statements
from tests.sqs.conftest import until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.asyncio(loop_scope="module"),
]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "intake.md").read_text(encoding="utf-8")
TOPICS = ("TOPIC_ARN", "OTHER_TOPIC_ARN")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def commands() -> Iterator[list[str]]:
    """The words of each `aws …` of the page."""
    for block in blocks("sh"):
        for words in statements(block.replace("\\\n", " ")):
            if words[0] == "aws":
                yield words[1:]


def parameters(shape: Shape | None, words: list[str]) -> dict[str, Any]:
    """The options of the AWS command line as the parameters of an operation."""
    assert isinstance(shape, StructureShape)
    members: dict[str, Shape] = shape.members
    by_option = {option(name): name for name in members}
    given: dict[str, Any] = {}
    for name, text in zip(words[::2], words[1::2], strict=True):
        member = by_option[{"--notification-endpoint": "--endpoint"}.get(name, name)]
        given[member] = value(members[member], text)
    return given


def option(member: str) -> str:
    return "--" + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", member).lower()


def value(shape: Shape, text: str) -> Any:
    """In JSON, or in the short form NAME=VALUE,NAME=VALUE."""
    if isinstance(shape, StringShape):
        return text
    if text[0] in "[{":
        return json.loads(text)
    if shape.type_name in ("integer", "long"):
        return int(text)
    if shape.type_name == "list" and "=" not in text:
        return [text]
    pairs = dict(part.split("=", 1) for part in text.split(","))
    return [pairs] if shape.type_name == "list" else pairs


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("intake_page")
    async with running_pipeline(folder, module_database, sqs_endpoint) as running:
        yield running


class Shell:
    """Runs the commands of the page on the emulator, with its own names in place of the page's."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._models = botocore.session.get_session()

    def run(self, service: str, operation: str, *words: str) -> Any:
        model = self._models.get_service_model(service)
        called = next(
            name for name in model.operation_names if option(name) == f"--{operation}"
        )  # raises StopIteration for an operation that AWS does not have
        given = parameters(model.operation_model(called).input_shape, [self.named(word) for word in words])
        client: Any = boto3.client(service)  # type: ignore[call-overload]
        return getattr(client, operation.replace("-", "_"))(**given)

    def named(self, text: str) -> str:
        return re.sub(
            "|".join(sorted(self._names, key=len, reverse=True)), lambda one: self._names[one[0]], text
        )


@pytest.fixture
def shell(pipeline: Pipeline, aws_environment: str) -> Shell:
    sqs, sns = boto3.client("sqs"), boto3.client("sns")
    queues = pipeline.system.queues

    def arn(url: str) -> str:
        return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    return Shell(
        {
            "INTAKE_ARN": arn(queues.work["intake"]),
            "INTAKE_URL": queues.work["intake"],
            "INTAKE_REDRIVE_ARN": arn(queues.redrive["intake"]),
            "INTAKE_REDRIVE_URL": queues.redrive["intake"],
            **{name: sns.create_topic(Name=name.lower())["TopicArn"] for name in TOPICS},
        }
    )


async def test_the_page_has_no_other_code() -> None:
    known = {"events": 3, "sns": 2, "sqs": 2, "logs": 1}
    found = [words[0] for words in commands()]
    assert {service: found.count(service) for service in found} == known
    assert sorted(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)) == ["python"] * 2 + ["sh"] * 7


async def test_a_rule_of_the_page_sends_its_events(pipeline: Pipeline, shell: Shell) -> None:
    await pipeline.subscribe("Order_Paid", "/ok")
    created = {
        "event_type": "order.created",
        "callback_url": pipeline.receiver_url + "/ok",
        "tenant_id": "acme",
    }
    subscription = await pipeline.call("POST", "/v1/subscriptions", json=created)
    pipeline.receiver.add_secret("/ok", subscription["secret"])
    await pipeline.call("POST", f"/v1/subscriptions/{subscription['id']}/verify")
    put_rule, plain, transformed = [words for words in commands() if words[0] == "events"]
    entry = {"Source": "shop.orders", "Detail": '{"order": 1001}'}
    shell.run(*put_rule)
    shell.run(*plain)
    boto3.client("events").put_events(Entries=[{**entry, "DetailType": "Order Paid"}])
    assert await pipeline.until_ended("Order_Paid", 1) == {"Completed": 1}
    shell.run(*transformed)
    boto3.client("events").put_events(Entries=[{**entry, "DetailType": "Order Created"}])
    assert await pipeline.until_ended("order.created", 1) == {"Completed": 1}
    (event,) = pipeline.rows("SELECT * FROM events WHERE event_type = 'order.created'")
    assert (event["tenant_id"], event["ordering_key"], event["payload"]) == ("acme", "1001", {"order": 1001})
    assert event["external_id"]


async def test_topics_of_the_page_send_their_messages(pipeline: Pipeline, shell: Shell) -> None:
    await pipeline.subscribe("invoice.paid", "/ok")
    for words in commands():
        if words[0] == "sns":
            shell.run(*words)
    for topic in TOPICS:
        boto3.client("sns").publish(
            TopicArn=shell.named(topic),
            Message='{"invoice": 1}',
            MessageAttributes={"event_type": {"DataType": "String", "StringValue": "invoice.paid"}},
        )
    assert await pipeline.until_ended("invoice.paid", 2) == {"Completed": 2}
    sources = {
        row["source"] for row in pipeline.rows("SELECT source FROM events WHERE event_type = 'invoice.paid'")
    }
    assert sources == {shell.named("TOPIC_ARN"), shell.named("INTAKE_ARN")}


async def test_the_producer_of_the_page_sends_its_event(pipeline: Pipeline, shell: Shell) -> None:
    (program,) = (block for block in blocks("python") if "boto3" in block)
    for _ in range(2):
        exec(shell.named(program), {})
    rows = "SELECT * FROM events WHERE external_id = 'order-1001'"
    await pipeline.until_quiet()
    (event,) = pipeline.rows(rows)
    assert (event["event_type"], event["payload"], event["source"]) == ("order.created", {"order": 1001}, "")


async def test_refused_messages_are_shown_as_the_page_says(pipeline: Pipeline, shell: Shell) -> None:
    boto3.client("sqs").send_message(QueueUrl=shell.named("INTAKE_URL"), MessageBody="hello")
    receive, move = [words for words in commands() if words[0] == "sqs"]
    (shown,) = await until(lambda: shell.run(*receive).get("Messages"), "the message is set aside")
    assert shown["MessageAttributes"]["hooksaga_refusal"]["StringValue"].startswith("invalid_json: ")
    model = botocore.session.get_session().get_service_model("sqs")
    given = parameters(model.operation_model("StartMessageMoveTask").input_shape, move[2:])
    assert given == {"SourceArn": "INTAKE_REDRIVE_ARN", "DestinationArn": "INTAKE_ARN"}
    boto3.client("sqs").purge_queue(QueueUrl=shell.named("INTAKE_REDRIVE_URL"))
