"""When the claims of a lane wait a moment for each other, and what is claimed at all."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hooksaga.runtime.settings import Settings
from hooksaga.stages import deliver
from hooksaga.stages.deliver import Lane
from hooksaga.stages.job_rows import WaitingJobs
from hooksaga.worker.delivery_lane import DeliveryLane
from hooksaga.worker.lane_parts import Ended
from hooksaga.worker.lane_turns import MOST_SUBSCRIPTIONS, has_backlog, left_some
from hooksaga.worker.places import Places, Pool, may_begin

BUSY, OTHER = 1, 2


@pytest.mark.parametrize(
    ("waiting", "room", "answered", "expected"),
    [
        ({BUSY: 4}, {BUSY: 4}, {BUSY}, True),
        ({BUSY: 3}, {BUSY: 4}, {BUSY}, False),
        ({BUSY: 4}, {BUSY: 4}, set(), False),  # it never answers
        ({BUSY: 4, OTHER: 1}, {BUSY: 4}, {OTHER}, False),  # nor do the others wait for it
        ({BUSY: 4, OTHER: 10}, {BUSY: 4}, {OTHER}, True),
        ({BUSY: 0}, {BUSY: 0}, {BUSY}, False),
        ({}, {}, {BUSY}, False),
    ],
)
def test_a_backlog_is_of_subscriptions_that_answer(
    waiting: dict[int, int], room: dict[int, int], answered: set[int], expected: bool
) -> None:
    rows = [WaitingJobs(key, list(range(many)) or None) for key, many in waiting.items()]
    assert has_backlog(rows, room, 10, answered) is expected


@pytest.mark.parametrize(
    ("waiting", "room", "chosen", "expected"),
    [
        ({}, {}, 0, False),
        ({OTHER: 1}, {}, 1, False),
        ({OTHER: 9, BUSY: 3}, {BUSY: 4}, 12, False),
        ({OTHER: 9, BUSY: 3}, {BUSY: 4}, 11, True),  # one found no place
        ({OTHER: 10}, {}, 10, True),
        ({BUSY: 4}, {BUSY: 4}, 4, True),
        ({BUSY: 0}, {BUSY: 0}, 0, True),  # it has no room, so nobody knows
    ],
)
def test_an_event_alone_needs_no_second_look(
    waiting: dict[int, int], room: dict[int, int], chosen: int, expected: bool
) -> None:
    rows = [WaitingJobs(key, list(range(many)) or None) for key, many in waiting.items()]
    assert left_some(rows, room, 10, chosen) is expected


@pytest.mark.parametrize("many", [1, MOST_SUBSCRIPTIONS - 1, MOST_SUBSCRIPTIONS, 2 * MOST_SUBSCRIPTIONS + 1])
async def test_looks_end_only_when_everybody_was_looked_at(
    monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    waiting = {number: [2 * number, 2 * number + 1] for number in range(1, many + 1)}

    async def find(_connection: Any, _lane: Lane, **asked: Any) -> list[WaitingJobs]:
        following = sorted(key for key in waiting if key > asked["after_subscription"])
        return [WaitingJobs(key, waiting[key].copy()) for key in following[: asked["max_subscriptions"]]]

    monkeypatch.setattr(deliver, "find_waiting_jobs", find)
    session: Any = SimpleNamespace(run=lambda unit: unit(None))
    parts: Any = SimpleNamespace(
        writer=None, settings=Settings(), sender=None, box=None, worker_id="w", wide=None
    )
    lane = DeliveryLane(Lane.RETRY, Pool(60), session, asyncio.Event(), parts)
    while True:
        for job_id in await lane._look(Ended()):
            waiting[job_id // 2].remove(job_id)
            if not waiting[job_id // 2]:
                del waiting[job_id // 2]
        if not lane._left_some:
            break
    assert waiting == {}


@pytest.mark.parametrize("subscriptions", [1, 2, 5, 50])
@pytest.mark.parametrize("free", [1, 2, 23, 144])
def test_nothing_is_claimed_that_could_not_begin_at_once(free: int, subscriptions: int) -> None:
    """It would wait, leased, for as long as somebody's slow receiver takes."""
    places, taken = Places(free, {}, {}), dict.fromkeys(range(subscriptions), 0)
    chosen = [key for _ in range(free) for key in taken if places.take(key)]
    assert chosen
    for key in chosen:
        assert may_begin(free - sum(taken.values()), taken[key])
        taken[key] += 1
    assert not any(places.take(key) for key in taken)


def test_as_many_are_held_ahead_as_ended_quickly() -> None:
    places = Places(4, {BUSY: 1}, {BUSY: 3})
    assert [places.take(BUSY) for _ in range(5)] == [True] * 4 + [False]  # one begins at once, three are held
    assert places.take(OTHER)
