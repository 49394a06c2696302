"""Endpoints that hang, each with more events than it has room: they hold up none of the others."""

import pytest

from tests.api.running_system import wait_until
from tests.e2e.recorder import each
from tests.e2e.world import World
from tests.faults.promises import Promise

HANGING = 14
TURNS = 5


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    """Thirty places of the quick lane, and fourteen endpoints that could fill them more than twice."""
    return {"concurrency": 40, "http_timeout_seconds": 30, "http_connect_timeout_seconds": 5}


@pytest.mark.guarantee(Promise.ROOM, "more endpoints that never answer than a look for work sees at once")
def test_one_behind_many_that_hang_is_delivered_time_and_again(world: World) -> None:
    before, after = world.subscribe(), [world.subscribe("hang") for _ in range(HANGING)]
    last = world.subscribe()
    each(lambda n: world.post(after[n % HANGING]), 5 * HANGING)
    wait_until(
        lambda: sum(len(world.recorder.events(one.path)) for one in after) >= HANGING,
        "a wall of them",
        25,
    )
    for turn in range(1, TURNS + 1):
        for other in (last, before):
            world.post(other)
            wait_until(lambda: len(world.recorder.events(other.path)) == turn, "past the wall", 10)  # noqa: B023
    finished = world.running.rows("SELECT FROM webhook_delivery_jobs WHERE status = 'Failed'")
    assert finished == []  # none of those that hang had to end for that
