"""One endpoint that hangs takes nothing from the others. Counted in deliveries, not in seconds."""

from functools import partial
from typing import Any

import pytest

from hooksaga.core.flow import FIRST_LIMIT
from hooksaga.stages import route_events
from hooksaga.worker import polling, start_queue
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import each
from tests.e2e.world import ENDED, World
from tests.faults.promises import Promise

OTHERS = 9
EVENTS_EACH = 12


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    """Few places, so that one endpoint could fill them all."""
    return {
        "concurrency": 8,
        "http_timeout_seconds": 30,
        "http_connect_timeout_seconds": 5,
    }


@pytest.mark.guarantee(Promise.ROOM, "an endpoint that never answers, beside nine others")
def test_hanging_endpoint_does_not_hold_up_nine_others(world: World) -> None:
    hanging = world.subscribe("hang", max_retry_limit=50)
    others = [world.subscribe() for _ in range(OTHERS)]
    each(lambda _: world.post(hanging), 60)
    world.recorder.wait_for(hanging.path, 1)
    each(lambda n: world.post(others[n % OTHERS]), OTHERS * EVENTS_EACH)
    wait_until(
        lambda: all(len(world.recorder.events(other.path)) == EVENTS_EACH for other in others),
        "every delivery of the nine",
        25,
    )
    # None of the hanging requests had to end for that: its timeout is longer than this test.
    finished = world.running.rows(
        "SELECT FROM webhook_delivery_jobs WHERE subscription_id = %s AND finished_at IS NOT NULL", hanging.id
    )
    assert finished == []
    assert len(world.recorder.events(hanging.path)) <= FIRST_LIMIT  # its room, wherever there are places


@pytest.mark.guarantee(Promise.ROOM, "a storm of retries")
def test_retries_do_not_hold_up_first_attempts(world: World) -> None:
    """The storm's endpoint refuses each event once, so its circuit breaker would stop it at once."""
    storm = world.subscribe("flaky/1", max_retry_limit=50, circuit_breaker=False)
    healthy = world.subscribe()
    storming = each(lambda _: world.post(storm), 30)
    for event_id in storming:
        world.saga_in(event_id, "PendingRetry", "InProgress", "Completed")
    each(lambda _: world.post(healthy), 30)
    wait_until(lambda: len(world.recorder.events(healthy.path)) == 30, "every first attempt", 25)
    assert {world.ended(event_id)["status"] for event_id in storming} == {"Completed"}


@pytest.mark.guarantee(Promise.ROOM, "one event with very many subscribers, before others with few")
@pytest.mark.long
@pytest.mark.parametrize("subscribers", [12, 4])
def test_a_wide_fan_out_does_not_hold_up_events_with_few_subscribers(
    world: World, monkeypatch: pytest.MonkeyPatch, subscribers: int
) -> None:
    monkeypatch.setattr(
        route_events, "route_events", partial(route_events.route_events, wide_from=20, part_size=20)
    )
    monkeypatch.setattr(start_queue, "NARROW", 5)
    monkeypatch.setattr(polling, "MAX_WIDE", 5)
    event_type = new_name("wide")
    many = [world.subscribe("slow/1500", event_type=event_type) for _ in range(60)]
    others = [world.subscribe() for _ in range(subscribers)]
    wide = world.post(many[0])
    narrow = each(lambda n: world.post(others[n % subscribers]), 12)
    wait_until(
        lambda: sum(len(world.recorder.events(other.path)) for other in others) == 12, "all twelve", 25
    )
    begun = sum(len(world.recorder.events(one.path)) for one in many)
    assert begun < len(many) * 3 / 4
    for event_id in narrow:
        assert world.ended(event_id)["status"] == "Completed"
    assert {saga["status"] for saga in all_ended(world, wide)} == {"Completed"}
    assert all(len(world.recorder.events(one.path)) == 1 for one in many)


def all_ended(world: World, event_id: str) -> list[dict[str, Any]]:
    wait_until(lambda: all(saga["status"] in ENDED for saga in world.sagas(event_id)), "all have ended", 25)
    return world.sagas(event_id)
