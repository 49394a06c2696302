"""Batches in, the messages to give back out."""

from typing import Any

import pytest

from hooksaga.aws.sqs_events import failures, read_messages
from hooksaga.core.messages import DeliveryMessage, OrchestrationMessage, RoutingMessage


def batch(*bodies: str | None) -> dict[str, Any]:
    return {"Records": [{"messageId": f"m{number}", "body": body} for number, body in enumerate(bodies)]}


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "x",
        "{}",
        "[]",
        "null",
        '{"event_id": "1"}',
        '{"event_id": 1.5}',
        '{"event_id": true}',
        '{"event_id": 0}',
        '{"event_id": 9223372036854775808}',
        '{"event_id": 1, "version": 2}',
        '{"event_id": 1',
        '{"event_id": NaN}',
        "[" * 100_000,
        "x" * 1_048_576,
    ],
)
def test_a_malformed_message_is_left_out_and_not_given_back(body: str | None) -> None:
    messages = read_messages(batch('{"event_id": 1}', body, '{"event_id": 2}'), RoutingMessage)
    assert [(message.message_id, message.body.event_id) for message in messages] == [("m0", 1), ("m2", 2)]


GOOD = '{"event_id": 1}'


@pytest.mark.parametrize(
    "record",
    [
        None,
        1,
        "text",
        [],
        {},
        {"body": GOOD},
        {"body": GOOD, "messageId": None},
        {"body": GOOD, "messageId": 7},
        {"body": {"event_id": 1}, "messageId": "m"},
        {"body": [], "messageId": "m"},
        {"body": 1, "messageId": "m", "eventSource": "aws:sqs"},
        {"body": GOOD, "messageId": "m", "eventSource": "aws:s3"},
        {"EventSource": "aws:sns", "Sns": {"MessageId": "m", "Message": GOOD}},
    ],
)
def test_a_record_that_is_no_message_costs_its_neighbours_nothing(
    record: object,
) -> None:
    event = batch(GOOD, '{"event_id": 2}')
    event["Records"].insert(1, record)
    messages = read_messages(event, RoutingMessage)
    assert [(message.message_id, message.body.event_id) for message in messages] == [("m0", 1), ("m1", 2)]


@pytest.mark.parametrize(
    "attributes",
    [
        None,
        [],
        "x",
        {"correlation_id": None},
        {"correlation_id": []},
        {"correlation_id": {"stringValue": None}},
    ],
)
def test_odd_attributes_cost_a_message_its_trace_alone(attributes: object) -> None:
    event = batch(GOOD)
    event["Records"][0]["messageAttributes"] = attributes
    (message,) = read_messages(event, RoutingMessage)
    assert message.correlation_id is None


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"subscription_id": 1, "job_id": 1}',
        '{"subscription_id": null}',
        '{"subscription_id": 1, "event_id": 2}',
    ],
)
def test_the_orchestrator_takes_exactly_one_id(body: str) -> None:
    assert read_messages(batch(body), OrchestrationMessage) == []


@pytest.mark.parametrize("name", ["subscription_id", "job_id", "cancel_saga_id"])
def test_the_orchestrator_takes_each_kind(name: str) -> None:
    (message,) = read_messages(batch(f'{{"{name}": 9007199254740993}}'), OrchestrationMessage)
    assert getattr(message.body, name) == 9007199254740993


def test_the_answer_names_exactly_those_that_come_back() -> None:
    body = '{"job_id": 1, "saga_id": 1}'
    messages = read_messages(batch(body, body, body), DeliveryMessage)
    assert failures(messages[1:]) == {
        "batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]
    }
    assert failures([]) == {"batchItemFailures": []}


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("attributes", "correlation_id"),
    [
        ({"correlation_id": {"stringValue": TRACE, "dataType": "String"}}, TRACE),
        ({"correlation_id": {"stringValue": f"{TRACE}\n", "dataType": "String"}}, None),
        ({"correlation_id": {"stringValue": "x" * 1000, "dataType": "String"}}, None),
        ({"correlation_id": {"binaryValue": "eA==", "dataType": "Binary"}}, None),
        ({"other": {"stringValue": TRACE, "dataType": "String"}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_message_says_its_trace_or_none(
    attributes: dict[str, Any] | None, correlation_id: str | None
) -> None:
    event = batch('{"event_id": 1}')
    event["Records"][0]["messageAttributes"] = attributes
    (message,) = read_messages(event, RoutingMessage)
    assert message.correlation_id == correlation_id


def test_a_batch_without_attributes_is_read_as_well() -> None:
    (message,) = read_messages(batch('{"event_id": 1}'), RoutingMessage)
    assert message.correlation_id is None
