"""One endpoint that hangs takes nothing from the others. Counted in deliveries, not in seconds."""

import pytest

from tests.api.running_system import wait_until
from tests.e2e.recorder import each
from tests.e2e.world import World
from tests.faults.promises import Promise

OTHERS = 9
EVENTS_EACH = 12


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    """Few places, so that one endpoint could fill them all."""
    return {"concurrency": 8, "http_timeout_seconds": 30, "http_connect_timeout_seconds": 5}


@pytest.mark.guarantee(Promise.ALONE, "an endpoint that never answers, beside nine others")
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
    assert len(world.recorder.events(hanging.path)) < 6  # of the six places for first attempts


@pytest.mark.guarantee(Promise.ALONE, "a storm of retries")
def test_retries_do_not_hold_up_first_attempts(world: World) -> None:
    """Retries have places of their own; hanging ones cannot take those of first attempts."""
    storm = world.subscribe("flaky/1", max_retry_limit=50)
    healthy = world.subscribe()
    storming = each(lambda _: world.post(storm), 30)
    for event_id in storming:
        world.saga_in(event_id, "PendingRetry", "InProgress", "Completed")
    each(lambda _: world.post(healthy), 30)
    wait_until(lambda: len(world.recorder.events(healthy.path)) == 30, "every first attempt", 25)
    assert {world.ended(event_id)["status"] for event_id in storming} == {"Completed"}
