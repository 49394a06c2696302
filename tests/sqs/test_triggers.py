"""Every handler refuses by name the events that are not its own, and does nothing."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hooksaga.aws.triggers import Trigger, UnexpectedEvent, expect
from hooksaga.local.sqs.function_table import FUNCTIONS

SAMPLES = Path(__file__).parents[2] / "events-samples"

SNS = {
    "EventSource": "aws:sns",
    "EventVersion": "1.0",
    "EventSubscriptionArn": "arn:aws:sns:us-east-1:123456789012:alarms:1",
    "Sns": {"Type": "Notification", "MessageId": "95df01b4", "Message": '{"event_id": 1}'},
}
S3 = {
    "eventVersion": "2.1",
    "eventSource": "aws:s3",
    "eventName": "ObjectCreated:Put",
    "s3": {"bucket": {"name": "b"}, "object": {"key": "k"}},
}
HTTP_API: dict[str, Any] = {
    "version": "2.0",
    "routeKey": "POST /v1/events",
    "rawPath": "/v1/events",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {
        "http": {"method": "POST", "path": "/v1/events"},
        "requestId": "r",
        "stage": "$default",
    },
    "body": "{}",
    "isBase64Encoded": False,
}
FOREIGN: dict[str, tuple[object, str]] = {
    "null": (None, "null"),
    "text": ("x", "a string"),
    "number": (1.5, "a number"),
    "boolean": (True, "a boolean"),
    "list": ([{"action": "stats"}], "a list"),
    "SNS": ({"Records": [SNS]}, "a record of 'aws:sns'"),
    "S3": ({"Records": [S3]}, "a record of 'aws:s3'"),
    "Kinesis": ({"Records": [{"eventSource": "aws:kinesis", "kinesis": {}}]}, "a record of 'aws:kinesis'"),
    "records of nobody": ({"Records": [{"Sns": {}}]}, "a record without a source"),
    "records that are null": ({"Records": [None]}, "null"),
    "HTTP API, payload 2.0": (HTTP_API, "a request of an HTTP API (payload format 2.0)"),
    "load balancer": (
        {"requestContext": {"elb": {}}, "httpMethod": "GET", "path": "/", "headers": {}},
        "a request of a load balancer",
    ),
    "WebSocket API": ({"requestContext": {"connectionId": "c"}, "body": "x"}, "a request of a WebSocket API"),
    "another EventBridge event": (
        {"detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2", "detail": {}},
        "the EventBridge event 'EC2 Instance State-change Notification'",
    ),
}
CONSOLE_TEST = {"key1": "value1", "key2": "value2", "key3": "value3"}
HANDLERS = {name: import_module(f"functions.{name}.handler") for name in FUNCTIONS}


@pytest.mark.parametrize(("event", "called"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("function", HANDLERS)
def test_a_handler_names_what_it_refuses(function: str, event: object, called: str) -> None:
    """Without a database, a queue or a setting: it is refused before any is needed."""
    with pytest.raises(UnexpectedEvent) as refused:
        HANDLERS[function].handler(event, None)
    assert str(refused.value).startswith("this function takes ")
    assert str(refused.value).endswith(f", not {called}")


@pytest.mark.parametrize("function", sorted(HANDLERS.keys() - {"admin", "subscriptions"}))
def test_the_consoles_own_test_event_is_named_by_its_keys(function: str) -> None:
    with pytest.raises(UnexpectedEvent, match="not an object with the keys 'key1', 'key2', 'key3'"):
        HANDLERS[function].handler(CONSOLE_TEST, None)


@pytest.mark.parametrize("function", ["admin", "subscriptions"])
def test_an_object_without_an_action_is_answered(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    answer = HANDLERS[function].handler(CONSOLE_TEST, None)
    assert answer["error"]["code"] == "invalid_field"


@pytest.mark.parametrize("function", HANDLERS)
def test_each_handler_refuses_the_events_of_its_neighbours(function: str) -> None:
    samples = {
        Trigger.SQS: "router/sqs.two_events",
        Trigger.TICK: "router/eventbridge.tick",
        Trigger.REST: "ingest/api_gateway.order_created",
        Trigger.EMPTY: "migrate/deploy.every_time",
    }
    own = {
        "admin": {Trigger.REST, Trigger.TICK, Trigger.EMPTY},
        "subscriptions": {Trigger.REST, Trigger.EMPTY},
        "router": {Trigger.SQS, Trigger.TICK},
        "orchestrator": {Trigger.SQS, Trigger.TICK},
        "delivery": {Trigger.SQS},
        "intake": {Trigger.SQS},
        "migrate": {Trigger.EMPTY},
        "ingest": {Trigger.REST},
        "console": {Trigger.REST},
    }
    refused = set[Trigger]()
    for trigger, path in samples.items():
        event = json.loads((SAMPLES / f"{path}.json").read_text(encoding="utf-8"))
        if trigger not in own.get(function, {Trigger.TICK}):
            with pytest.raises(UnexpectedEvent):
                HANDLERS[function].handler(event, None)
            refused.add(trigger)
    assert refused == samples.keys() - own.get(function, {Trigger.TICK})


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        ({"Records": []}, Trigger.SQS),
        ({"Records": [SNS, {"messageId": "m", "body": "{}"}]}, Trigger.SQS),
        ({"Records": None}, Trigger.OBJECT),
        ({"action": "stats"}, Trigger.OBJECT),
        ({"RequestType": "Create", "StackId": "s"}, Trigger.DEPLOYMENT),
        ({"httpMethod": "GET", "path": "/", "version": "1.0"}, Trigger.REST),
        ({"httpMethod": "GET", "path": None}, Trigger.OBJECT),
        ({"httpMethod": "GET", "path": "/", "requestContext": None}, Trigger.REST),
    ],
)
def test_an_event_is_told_by_its_shape(event: object, trigger: Trigger) -> None:
    assert expect(event, *Trigger) is trigger


def test_a_refusal_holds_no_value_and_no_long_name() -> None:
    event = {"x" * 500: "secret", "\n": "secret", **dict.fromkeys("abcdef", "secret")}
    with pytest.raises(UnexpectedEvent) as refused:
        expect(event, Trigger.TICK)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200
