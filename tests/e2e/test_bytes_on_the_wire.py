"""A subscriber receives the payload byte for byte, with a fresh signature that an independent library accepts."""

from dataclasses import dataclass

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from tests.e2e.world import Subscriber, World, assert_signed

PAYLOADS = {
    "numbers": b'{"a":1.10,"b":1.0,"c":1E3,"d":-0,"e":1e-7,"f":12345678901234567890,"g":1e400}',
    "duplicate names": b'{"amount":1,"amount":2,"id":"x","id":"y"}',
    "escapes": rb'{"a":"\u0000","b":"C:\\users\\u0000x","c":"\\\\u0000","d":"\/","e":"\ud83d\ude00"}',
    "spacing": b'{\r\n  "z" : 1 ,\t"a":[ 1,2 , 3 ]\r\n\r\n}',
    "text": '{"t":"žluť 😀 \u2028 \x7f"}'.encode(),
    "plain string": b'""',
    "null": b"null",
    "many digits": b"[" + b"9" * 5000 + b",0." + b"1" * 5000 + b"]",
    "large": b'{"x":"' + "€".encode() * 80_000 + b'"}',
}


@dataclass(frozen=True)
class Journey:
    """One payload's way: two failed attempts, a dead letter, a requeue, success."""

    event_id: str
    subscriber: Subscriber


@pytest.fixture(scope="module")
def journeys(world: World) -> dict[str, Journey]:
    """All payloads travel at the same time."""
    made: dict[str, Journey] = {}
    for name, payload in PAYLOADS.items():
        subscriber = world.subscribe("down", max_retry_limit=2)
        made[name] = Journey(world.post(subscriber, payload), subscriber)
    for one in made.values():
        world.dead_letter(one.event_id)
        world.recorder.receiver.fix(one.subscriber.path)
        world.requeue(one.event_id)
    return made


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_is_the_same_on_first_try_retry_and_requeue(
    world: World, journeys: dict[str, Journey], name: str
) -> None:
    event_id, subscriber = journeys[name].event_id, journeys[name].subscriber
    assert world.ended(event_id)["status"] == "Completed"
    arrived = world.recorder.events(subscriber.path)
    assert [one.header("hooksaga-attempt") for one in arrived] == ["1", "2", "1"]
    for one in arrived:
        assert one.body == PAYLOADS[name]
        assert one.header("webhook-id") == event_id
        assert one.header("content-length") == str(len(PAYLOADS[name]))
        assert_signed(one, subscriber.secret)


def test_blanks_around_the_payload_are_not_sent(world: World) -> None:
    subscriber = world.subscribe()
    body = b'\n{ "payload":\r\n {"a" : 1}\t ,"event_type":"' + subscriber.event_type.encode() + b'" }\n'
    assert world.api.post_event(body).status == 202
    assert world.recorder.wait_for(subscriber.path, 1)[0].body == b'{"a" : 1}'


def test_timestamp_and_signature_are_new_on_every_attempt(world: World) -> None:
    subscriber = world.subscribe("status/500", max_retry_limit=2, base_delay_seconds=1.1)
    event_id = world.post(subscriber)
    world.ended(event_id)
    first, second = world.recorder.events(subscriber.path)
    assert first.header("webhook-id") == second.header("webhook-id") == event_id
    assert int(second.header("webhook-timestamp")) > int(first.header("webhook-timestamp"))
    assert first.header("webhook-signature") != second.header("webhook-signature")


def test_the_library_would_notice_a_changed_byte_or_another_secret(world: World) -> None:
    """Without this the checks above could be true of anything."""
    subscriber, other = world.subscribe(), world.subscribe()
    world.post(subscriber, b'{"a": 1}')
    arrived = world.recorder.wait_for(subscriber.path, 1)[0]
    arrived.verify(subscriber.secret)
    with pytest.raises(WebhookVerificationError):
        arrived.verify(other.secret)
    changed = type(arrived)(arrived.path, arrived.query, arrived.headers, b'{"a":1}', arrived.at)
    with pytest.raises(WebhookVerificationError):
        changed.verify(subscriber.secret)


def test_the_request_carries_what_is_promised_and_nothing_else(world: World) -> None:
    subscriber = world.subscribe(headers={"x-tenant": "a b;c", "Authorization": "Bearer theirs"})
    event_id = world.post(subscriber)
    arrived = world.recorder.wait_for(subscriber.path, 1)[0]
    assert sorted(name for name, _ in arrived.headers) == sorted(
        [
            "host",
            "content-type",
            "content-length",
            "user-agent",
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
            "hooksaga-event-type",
            "hooksaga-attempt",
            "traceparent",
            "x-tenant",
            "authorization",
        ]
    )
    assert arrived.header("content-type") == "application/json"
    assert arrived.header("user-agent").startswith("hooksaga/")
    assert arrived.header("hooksaga-event-type") == subscriber.event_type
    assert arrived.header("host") == world.recorder.url.removeprefix("https://")
    assert arrived.header("x-tenant") == "a b;c"
    assert arrived.header("authorization") == "Bearer theirs"
    assert event_id.startswith("evt_")


def test_query_of_the_callback_url_arrives_as_it_is(world: World) -> None:
    subscriber = world.subscribe()
    url = f"{world.recorder.url}{subscriber.path}?a=%2F&b=1+2&c=%zz&a="
    world.api.good("PATCH", subscriber.target, {"callback_url": url})
    world.api.good("POST", f"{subscriber.target}/verify")
    world.post(subscriber)
    arrived = world.recorder.wait_for(subscriber.path, 1)[0]
    assert arrived.path == subscriber.path
    assert "a=" in arrived.query
