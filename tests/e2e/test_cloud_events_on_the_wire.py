"""A CloudEvent that is posted arrives as the same CloudEvent, signed, in every attempt."""

import json
import os
from datetime import datetime
from typing import Any

import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from hooksaga.core.attempts import MASK
from tests.e2e.recorder import Arrived
from tests.e2e.test_attempt_log import TRANSPORT
from tests.e2e.world import Subscriber, World, assert_signed

FORMATS = ("cloudevents-structured", "cloudevents-binary")
PAYLOAD = '{ "total": 1.10, "名": "訂單" }'


def posted(world: World, subscriber: Subscriber, *, mode: str) -> tuple[dict[str, Any], str]:
    """Post a CloudEvent in a mode; return its attributes and the id of the event."""
    attributes = {
        "specversion": "1.0",
        "id": f"order € {os.urandom(4).hex()}",
        "source": "/shops/berlin",
        "type": subscriber.event_type,
        "subject": "訂單 1001",
        "time": "2026-03-01T09:00:00.123456789+01:00",
        "datacontenttype": "application/json",
        "region": "eu west",
    }
    if mode == "structured":
        body = json.dumps(attributes)[:-1] + f', "data": {PAYLOAD}}}'
        answer = world.api.post_event(body.encode(), content_type="application/cloudevents+json")
    else:
        encoded = {name: value.encode().decode("latin-1") for name, value in attributes.items()}
        headers = [
            (
                f"ce-{name}",
                "".join(f"%{ord(one):02X}" if ord(one) > 126 or one in " %" else one for one in value),
            )
            for name, value in encoded.items()
            if name != "datacontenttype"
        ]
        answer = world.api.post_event(PAYLOAD.encode(), *headers)
    assert answer.status == 202, answer.body
    return attributes, answer.json()["id"]


def parsed(arrived: Arrived) -> BaseCloudEvent:
    return from_http_event(HTTPMessage(headers=dict(arrived.headers), body=arrived.body))


def own_headers_of(arrived: Arrived) -> dict[str, str]:
    return {name: value for name, value in arrived.headers if name.startswith("ce-")}


@pytest.mark.parametrize("mode", ["structured", "binary"])
@pytest.mark.parametrize("delivery_format", FORMATS)
def test_a_cloud_event_arrives_with_its_attributes(world: World, mode: str, delivery_format: str) -> None:
    subscriber = world.subscribe(format=delivery_format)
    attributes, event_id = posted(world, subscriber, mode=mode)
    world.saga_in(event_id, "Completed")
    (arrived,) = world.recorder.events(subscriber.path)
    assert_signed(arrived, subscriber.secret)
    assert arrived.header("webhook-id") == event_id
    event = parsed(arrived)
    told = dict(event.get_attributes())
    assert told.pop("time") == datetime.fromisoformat("2026-03-01T09:00:00.123456+01:00")
    assert told == {name: value for name, value in attributes.items() if name != "time"}
    assert PAYLOAD.encode() in arrived.body


@pytest.mark.parametrize("delivery_format", FORMATS)
def test_another_event_arrives_as_a_cloud_event_of_its_tenant(world: World, delivery_format: str) -> None:
    subscriber = world.subscribe(format=delivery_format)
    event_id = world.post(subscriber, b"[1.10]")
    world.saga_in(event_id, "Completed")
    (arrived,) = world.recorder.events(subscriber.path)
    event = parsed(arrived)
    told = (event.get_id(), event.get_source(), event.get_type(), event.get_data())
    assert told == (event_id, "/hooksaga/default", subscriber.event_type, [1.1])
    created_at = world.api.good("GET", f"/v1/events/{event_id}")["created_at"]
    assert event.get_time() == datetime.fromisoformat(created_at)


@pytest.mark.parametrize("delivery_format", FORMATS)
def test_a_retry_sends_the_same_bytes(world: World, delivery_format: str) -> None:
    subscriber = world.subscribe("flaky/1", format=delivery_format)
    _, event_id = posted(world, subscriber, mode="structured")
    world.saga_in(event_id, "Completed")
    first, second = world.recorder.events(subscriber.path)
    assert first.body == second.body
    assert own_headers_of(first) == own_headers_of(second)
    assert bool(own_headers_of(first)) == (delivery_format == "cloudevents-binary")
    assert_signed(second, subscriber.secret)


def test_the_log_shows_the_headers_of_the_format_that_was_sent(world: World) -> None:
    subscriber = world.subscribe(format="cloudevents-binary")
    _, event_id = posted(world, subscriber, mode="structured")
    attempt = world.saga_in(event_id, "Completed")["attempts"][0]
    world.api.good("PATCH", subscriber.target, {"format": "payload"})
    (arrived,) = world.recorder.events(subscriber.path)
    told = world.api.good("GET", f"/v1/attempts/{attempt['id']}")["request_headers"]
    sent = {name: value for name, value in arrived.headers if name not in TRANSPORT}
    assert told == {**sent, "webhook-signature": MASK}
    assert attempt["request_headers"] == told


def test_a_change_applies_to_the_next_event(world: World) -> None:
    subscriber = world.subscribe()
    assert world.api.good("GET", subscriber.target)["format"] == "payload"
    world.saga_in(world.post(subscriber), "Completed")
    changed = world.api.good("PATCH", subscriber.target, {"format": "cloudevents-structured"})
    assert changed["format"] == "cloudevents-structured"
    world.saga_in(world.post(subscriber), "Completed")
    first, second = world.recorder.events(subscriber.path)
    assert (first.header("content-type"), first.body) == ("application/json", b"{}")
    assert second.header("content-type") == "application/cloudevents+json"
    assert json.loads(second.body)["data"] == {}
