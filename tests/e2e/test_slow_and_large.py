"""Receivers that need nearly all of their time, and payloads of the greatest size: neither is sent twice for it."""

import pytest

from hooksaga.worker import payload_memory
from tests.api.running_system import wait_until
from tests.e2e.recorder import each
from tests.e2e.world import World

LARGEST = 262_144 - 100
"""A payload whose envelope still fits."""


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    """Time enough for each POST, and not much more."""
    return {"concurrency": 30, "http_timeout_seconds": 3, "http_connect_timeout_seconds": 2}


@pytest.mark.long
def test_a_receiver_just_within_its_time_is_asked_once(world: World) -> None:
    """A slow answer is no reason for another to take the job: a lease outlives the longest POST."""
    slow = [world.subscribe("slow/2000") for _ in range(5)]
    events = each(lambda n: world.post(slow[n % 5]), 50)
    for event_id in events:
        saga = world.ended(event_id, seconds=60)
        assert (saga["status"], saga["attempt_count"]) == ("Completed", 1)
    arrived = [one.header("webhook-id") for one in world.recorder.events() if "/slow/" in one.path]
    assert sorted(arrived) == sorted(events)
    assert world.running.rows("SELECT id FROM webhook_delivery_jobs WHERE claim_count > 1") == []


def test_the_largest_payloads_hold_up_no_small_one_and_are_not_sent_twice(world: World) -> None:
    large, small = world.subscribe(), world.subscribe()
    payload = b'"' + b"x" * (LARGEST - 2) + b'"'
    great = each(lambda _: world.post(large, payload), 40, threads=4)
    little = each(lambda _: world.post(small, b"1"), 40)
    wait_until(lambda: len(world.recorder.events(small.path)) == 40, "every small one", 25)
    for event_id in [*great, *little]:
        assert world.ended(event_id, seconds=60)["attempt_count"] == 1
    arrived = world.recorder.events(large.path)
    assert sorted(one.header("webhook-id") for one in arrived) == sorted(great)
    assert {one.body for one in arrived} == {payload}


def test_no_more_payloads_are_claimed_than_memory_is_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes then is claimed once another has ended, and not before."""
    at_once, seconds = 4, 0.3
    monkeypatch.setattr(payload_memory, "MAX_CHARACTERS", at_once * LARGEST)
    slow = [world.subscribe("slow/300") for _ in range(6)]
    payload = b'"' + b"x" * (LARGEST - 2) + b'"'
    assert (
        world.ended(world.post(slow[0], payload))["status"] == "Completed"
    )  # now it is known how large they are
    events = each(lambda n: world.post(slow[n % 6], payload), 24, threads=4)
    assert {world.ended(event_id, seconds=60)["attempt_count"] for event_id in events} == {1}
    arrived = sorted(one.at for path in slow for one in world.recorder.events(path.path))
    waits = [later - earlier for earlier, later in zip(arrived, arrived[at_once:], strict=False)]
    assert min(waits) > 0.9 * seconds
