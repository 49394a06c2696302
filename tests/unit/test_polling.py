"""How long a loop of polling mode rests, and what the starter looks at."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.core.saga import SagaStatus
from hooksaga.runtime.settings import Settings
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.start_attempts import Started
from hooksaga.stages.start_plan import BATCH, Places
from hooksaga.worker import starter
from hooksaga.worker.loops import POLL_SECONDS, rest_after
from hooksaga.worker.places import WorkerPlaces
from hooksaga.worker.refused_rows import RefusedRows
from hooksaga.worker.start_queue import NARROW, StartQueue
from hooksaga.worker.starter import Starter
from hooksaga.worker.wakes import Wakes


def test_a_loop_rests_longer_after_each_failure_and_never_for_long() -> None:
    rests = [rest_after(failures) for failures in range(1, 10)]
    assert rests[0] == 0.2
    assert all(before <= after for before, after in pairwise(rests))
    assert rests[-1] == 5.0


def test_failures_for_days_are_no_fault_of_the_loop() -> None:
    assert rest_after(100_000) == 5.0


def starter_of(monkeypatch: pytest.MonkeyPatch) -> Starter:
    """A starter whose session runs nothing, with no subscription to wake."""
    address = DatabaseAddress("postgresql:///nowhere")
    made = Starter(Settings(), address, Wakes(), RefusedRows(), asyncio.Event(), WorkerPlaces(8, 8))
    monkeypatch.setattr(made, "_starting", SimpleNamespace(run=lambda unit: unit(None)))
    monkeypatch.setattr(starter, "seconds_until_next_wake", never)
    return made


class Calls:
    """Stands for start_attempts: notes what it was asked, and answers with what was given."""

    def __init__(self, *answers: Started) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[int], int]] = []

    async def __call__(
        self,
        _connection: object,
        defaults: object,
        *,
        subscription_ids: Sequence[int],
        most_woken: int,
        places: Places,
    ) -> Started:
        self.asked.append((list(subscription_ids), most_woken))
        return self.answers.pop(0) if self.answers else Started()


def moved(saga_id: int, *, slow: bool = False) -> SagaMoved:
    status = SagaStatus.IN_PROGRESS
    return SagaMoved(saga_id, uuid4(), 1, status, 0, datetime.now(UTC), None, job_id=saga_id, slow=slow)


async def never(_connection: object) -> float | None:
    return None


@pytest.mark.parametrize("asked_meanwhile", [False, True])
async def test_who_lets_a_saga_wait_while_the_soonest_is_asked_for_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, asked_meanwhile: bool
) -> None:
    one = starter_of(monkeypatch)

    async def soonest(_connection: object) -> None:
        if asked_meanwhile:
            one.look_when_next_is_due()

    monkeypatch.setattr(starter, "start_attempts", Calls())
    monkeypatch.setattr(starter, "seconds_until_next_wake", soonest)
    assert not await one.step()
    rest = one.until_next_wake()
    assert rest == 0 if asked_meanwhile else 0.9 * POLL_SECONDS < rest <= POLL_SECONDS


async def test_a_starter_with_nothing_to_look_at_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one, calls = starter_of(monkeypatch), Calls()
    monkeypatch.setattr(starter, "start_attempts", calls)
    assert not await one.step()
    assert not await one.step()
    assert calls.asked == []
    one.look_at([7, 8, 7])
    assert not await one.step()
    assert calls.asked == [([7, 8], 0)]


class Pages:
    """Stands for unapplied_results: pages of results, and the places that it was asked to go on from."""

    def __init__(self, *pages: list[int], more: bool = False) -> None:
        self.pages = list(pages)
        self.more = more
        self.asked: list[Sequence[int]] = []

    async def __call__(
        self, _connection: object, *, after: Sequence[int]
    ) -> tuple[list[int], Sequence[int] | None]:
        self.asked.append(after)
        found = self.pages.pop(0) if self.pages else []
        return found, (1, len(self.asked)) if self.pages or self.more else None


def applier_of(monkeypatch: pytest.MonkeyPatch, pages: Pages) -> tuple[Starter, list[list[int]]]:
    """A starter that looks for results at these pages, and what it applied."""
    one, applied = starter_of(monkeypatch), list[list[int]]()

    async def note(_connection: object, *, job_ids: list[int], **_: object) -> list[SagaMoved]:
        applied.append(job_ids)
        return []

    monkeypatch.setattr(one, "_applying", SimpleNamespace(run=lambda unit: unit(None)))
    monkeypatch.setattr(starter, "unapplied_results", pages)
    monkeypatch.setattr(starter, "apply_results", note)
    return one, applied


async def test_at_start_all_pages_are_looked_at_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = Pages([], [7], [], [8, 9])
    one, applied = applier_of(monkeypatch, pages)
    while await one.apply():
        pass
    assert pages.asked == [(0, 0), (1, 1), (1, 2), (1, 3)]
    assert sorted(job_id for batch in applied for job_id in batch) == [7, 8, 9]


async def test_later_one_page_is_looked_at_and_the_next_after_a_page_with_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages(more=True)
    one, applied = applier_of(monkeypatch, pages)
    one._looks_for_all = False
    assert not await one.apply()
    assert pages.asked == [(0, 0)]
    pages.pages = [[5]]
    assert await one.apply()
    assert not await one.apply()
    assert pages.asked == [(0, 0), (1, 1), (1, 2)]
    assert applied == [[5]]


async def test_results_that_were_told_are_applied_before_a_look_and_those_left_are_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, applied = applier_of(monkeypatch, Pages())
    monkeypatch.setattr(starter, "BATCH", 2)

    async def leave(
        _connection: object, *, job_ids: list[int], on_left: Callable[[int], None], **_: object
    ) -> list[SagaMoved]:
        applied.append(job_ids)
        on_left(job_ids[0])
        return []

    monkeypatch.setattr(starter, "apply_results", leave)
    one.note_results([1, 2, 3])
    assert one._wakes.apply.is_set()
    assert await one.apply()
    assert await one.apply()
    assert applied == [[1, 2], [3, 1]]


@pytest.mark.parametrize(("seconds", "asked"), [(-1.0, True), (0.0, True), (0.3, False), (None, False)])
async def test_subscriptions_are_woken_when_the_database_says_that_one_is_due(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, asked: bool
) -> None:
    one, calls = starter_of(monkeypatch), Calls()

    async def soonest(_connection: object) -> float | None:
        return seconds

    monkeypatch.setattr(starter, "start_attempts", calls)
    monkeypatch.setattr(starter, "seconds_until_next_wake", soonest)
    assert not await one.step()
    assert calls.asked == ([([], BATCH)] if asked else [])
    longest = 0.3 if seconds == 0.3 else POLL_SECONDS
    assert one.until_next_wake() <= longest


async def test_what_has_more_is_looked_at_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, calls = starter_of(monkeypatch), Calls(Started([moved(1)], [5]), Started([moved(2)]))
    monkeypatch.setattr(starter, "start_attempts", calls)
    one.look_at([5])
    assert await one.step() is True
    assert await one.step() is False
    assert [ids for ids, _ in calls.asked] == [[5], [5]]


async def test_a_locked_subscription_is_looked_at_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    one = starter_of(monkeypatch)
    monkeypatch.setattr(starter, "start_attempts", Calls(Started(again=[5])))
    one.look_at([5])
    one._wakes.start.clear()
    assert await one.step() is False
    async with asyncio.timeout(10):
        await one._wakes.start.wait()
    assert one.queue.take(10) == [5]


async def test_jobs_are_started_only_so_far_ahead_of_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    one = starter_of(monkeypatch)
    most = Settings().concurrency
    calls = Calls(Started([moved(number) for number in range(most)], [5]))
    monkeypatch.setattr(starter, "start_attempts", calls)
    one.look_at([5])
    await one.step()
    assert await one.step() is False
    assert len(calls.asked) == 1
    assert one.rest_seconds() == POLL_SECONDS
    one._wakes.start.clear()
    one._places.quick.claim(range(10), {})
    one.note_claimed()
    assert one._wakes.start.is_set()
    await one.step()
    assert calls.asked[1] == ([5], 0)


async def test_a_subscription_without_a_place_is_looked_at_once_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, calls = starter_of(monkeypatch), Calls()
    monkeypatch.setattr(starter, "start_attempts", calls)
    started = dict.fromkeys(range(100, 104), 5)
    one._places.quick.start(started)
    one.look_at([5, 6])
    await one.step()
    assert calls.asked == [([6], 0)]
    one._wakes.start.clear()
    one.note_claimed()
    assert not one._wakes.start.is_set()
    one._places.quick.claim(started, {})
    one.note_claimed()
    assert one._wakes.start.is_set()
    await one.step()
    assert calls.asked[1:] == [([5], 0)]


async def test_each_lane_is_woken_for_its_own_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    one = starter_of(monkeypatch)
    monkeypatch.setattr(starter, "start_attempts", Calls(Started([moved(1, slow=True)])))
    one.look_at([5])
    await one.step()
    assert (one._wakes.slow.is_set(), one._wakes.quick.is_set()) == (True, False)


# The queue of hints


def test_a_wide_event_gets_its_share_and_what_is_left_over() -> None:
    queue = StartQueue()
    queue.put_event(list(range(1000, 1000 + NARROW + 1)), whole=True)
    queue.put_event([1, 2, 3], whole=True)
    queue.put([3, 4])
    first = queue.take(8)
    assert first[:4] == [1, 2, 3, 4]
    assert first[4:] == [1000, 1001, 1002, 1003]
    queue.put(range(100, 200))
    assert queue.take(8) == [*range(100, 106), 1004, 1005]
    assert len(queue) == 94 + queue.wide == 94 + NARROW + 1 - 6


def test_a_wide_event_gets_one_turn_in_four_however_few_are_taken_at_once() -> None:
    queue = StartQueue()
    queue.put_event(list(range(1000, 1000 + NARROW + 1)), whole=True)
    queue.put(range(100))
    taken = [queue.take(1)[0] for _ in range(20)]
    assert sum(one >= 1000 for one in taken) == 5
    assert max(taken[:4]) >= 1000


def test_a_part_of_a_wide_event_is_wide_however_short() -> None:
    queue = StartQueue()
    queue.put_event([1], whole=False)
    assert (queue.wide, queue.take(1), len(queue)) == (1, [1], 0)


@given(st.lists(st.lists(st.integers(1, 300), max_size=80)), st.integers(1, 60))
def test_every_hint_leaves_the_queue_once(events: list[list[int]], most: int) -> None:
    queue = StartQueue()
    for ids in events:
        queue.put_event(ids, whole=True)
    taken: list[int] = []
    while len(queue):
        some = queue.take(most)
        assert 0 < len(some) <= most
        taken += some
    narrow = {one for ids in events if len(ids) <= NARROW for one in ids}
    wide = {one for ids in events if len(ids) > NARROW for one in ids}
    assert sorted(taken) == sorted([*narrow, *wide])
