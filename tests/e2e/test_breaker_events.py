"""An endpoint that always fails: its circuit breaker opens and closes, and subscribers receive an event for each."""

import json
from typing import Any

import pytest

from tests.api.running_system import wait_until
from tests.e2e.world import Subscriber, World, assert_signed

OPENED, CLOSED = "hooksaga.subscription.breaker_opened", "hooksaga.subscription.breaker_closed"


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    return {"breaker_failures": 3, "probe_seconds": 0.2}


def told(world: World, watcher: Subscriber, subscriber: Subscriber) -> dict[str, Any]:
    """Wait for the one event about the subscriber."""

    def found() -> list[dict[str, Any]]:
        arrived = world.recorder.events(watcher.path)
        for one in arrived:
            assert_signed(one, watcher.secret)
        contents = [json.loads(one.body) for one in arrived]
        return [one for one in contents if one["data"]["subscription_id"] == subscriber.id]

    (event,) = wait_until(found, "an operational event")
    return event


def wait_for_state(world: World, subscriber: Subscriber, *states: str) -> None:
    wait_until(lambda: world.api.good("GET", subscriber.target)["flow"]["state"] in states, str(states))


def test_an_outage_is_told_when_it_begins_and_when_it_ends(world: World) -> None:
    openings, closings = world.subscribe(event_type=OPENED), world.subscribe(event_type=CLOSED)
    down = world.subscribe("down", max_retry_limit=50, base_delay_seconds=0.1)
    events = [world.post(down) for _ in range(5)]
    wait_for_state(world, down, "breaker_open")
    opened = told(world, openings, down)
    assert opened["data"]["error_code"] == "http_503"
    assert opened["data"]["consecutive_failures"] >= 3
    world.recorder.receiver.fix(down.path)
    wait_for_state(world, down, "open", "limited")
    closed = told(world, closings, down)
    assert closed["data"]["opened_at"] == opened["data"]["opened_at"] < closed["data"]["closed_at"]
    for event_id in events:
        assert world.ended(event_id)["status"] == "Completed"
    assert told(world, openings, down) == opened
