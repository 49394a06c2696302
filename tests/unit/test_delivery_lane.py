"""How a lane of polling mode claims: what fits into its places, and jobs that may kill their workers one at a time."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.settings import Settings
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.worker import delivery_lane
from hooksaga.worker.delivery_lane import DeliveryLane, LaneParts
from hooksaga.worker.places import WorkerPlaces
from tests.database.seed import outcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(number: int, *, alone: bool = False, payload: str = "{}") -> ClaimedJob:
    return ClaimedJob(
        id=number,
        saga_id=number,
        subscription_id=1,
        attempt_number=1,
        claim_count=1,
        leased_at=NOW,
        lease_until=NOW,
        event_id=number,
        webhook_id=uuid4(),
        traceparent=None,
        event_type="a",
        event_created_at=NOW,
        payload=payload,
        callback_url="https://a.example",
        headers="{}",
        timeout_seconds=None,
        deliverable=True,
        secrets=None,
        alone=alone,
    )


class Bench:
    """A lane whose jobs come from a list, and whose POSTs end when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, places: int, waiting: Sequence[ClaimedJob]) -> None:
        self.waiting = list(waiting)
        self.limits: list[int] = []
        self.posts: dict[int, asyncio.Event] = {}
        self.written: list[int] = []
        self.unclaimed: list[int] = []
        self.places = WorkerPlaces(1, places)
        self.asked: list[Sequence[int] | None] = []
        self.wake = asyncio.Event()
        monkeypatch.setattr(deliver, "claim_waiting_jobs", self._look)
        monkeypatch.setattr(deliver, "claim_jobs", self._claim)
        monkeypatch.setattr(deliver, "attempt", self._attempt)
        monkeypatch.setattr(delivery_lane, "note_claimed", lambda _jobs: None)
        monkeypatch.setattr(deliver, "hand_back_lost_claims", self._hand_back_lost_claims)
        self.fails = False
        self.kept: list[list[int]] = []
        writer: Any = SimpleNamespace(
            in_hand=[77],
            write=lambda result: self.written.append(result.job.id),
            until_room=self._at_once,
            let_go=lambda: None,
        )
        session: Any = SimpleNamespace(run=lambda unit: unit(None))
        nobody: Any = None
        parts = LaneParts(writer, Settings(), nobody, nobody, "w", self.places, self._note_claim)
        self.lane = DeliveryLane(slow=True, session=session, wake=self.wake, parts=parts)

    @property
    def free(self) -> int:
        return self.places.slow.free

    def _note_claim(self) -> None:
        self.unclaimed.append(self.places.slow.unclaimed)

    async def _at_once(self) -> None:
        pass

    def start(self, *numbers: int) -> None:
        """Tell the lane of jobs that its process has started."""
        self.places.slow.start(dict.fromkeys(numbers, 1))

    async def _hand_back_lost_claims(self, _connection: object, *, in_hand: list[int], **_: Any) -> int:
        self.kept.append(in_hand)
        return 1

    async def _look(self, _connection: object, *, slow: bool, limit: int, one_alone: bool, **_: Any) -> Any:
        assert slow
        self.asked.append(None)
        self.limits.append(limit)
        return self._take([one for one in self.waiting if not one.alone or one_alone][:limit])

    async def _claim(self, _connection: object, *, job_ids: Sequence[int], **_: Any) -> Any:
        self.asked.append(job_ids)
        if self.fails:
            raise DatabaseUnavailable("the connection broke")
        return self._take([one for one in self.waiting if one.id in job_ids])

    def _take(self, taken: list[ClaimedJob]) -> list[ClaimedJob]:
        self.waiting = [one for one in self.waiting if one not in taken]
        return taken

    async def _attempt(self, _sender: object, _box: object, one: ClaimedJob, **_: Any) -> AttemptResult:
        self.posts[one.id] = asyncio.Event()
        await self.posts[one.id].wait()
        return AttemptResult(one, outcome())

    async def end(self, number: int) -> None:
        await self._turns()
        self.posts.pop(number).set()
        await self._turns()

    async def _turns(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_lane_claims_what_fits_into_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 3, [job(number) for number in range(5)])
    assert await bench.lane.step() is True
    assert bench.free == 0
    step = asyncio.create_task(bench.lane.step())
    await bench.end(1)
    assert await step is True
    await bench.end(0)
    await bench.end(2)
    assert await bench.lane.step() is False
    assert bench.limits == [3, 1, 2]
    for number in (3, 4):
        await bench.end(number)
    await bench.lane.drain()
    assert sorted(bench.written) == [0, 1, 2, 3, 4]


async def test_started_jobs_are_claimed_by_their_ids_and_others_by_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, 5, [job(1), job(2), job(3), job(4)])
    bench.lane._looks_at = time.monotonic() + 60
    bench.start(3, 9, 1)
    assert await bench.lane.step() is False
    assert (bench.asked, sorted(one.id for one in bench.waiting)) == ([[3, 9, 1]], [2, 4])
    assert (bench.unclaimed, bench.free) == ([0], 3)
    bench.start(2)
    bench.lane._looks_at = time.monotonic()
    assert await bench.lane.step() is False
    assert (bench.asked[1:], bench.waiting, bench.unclaimed) == ([None], [], [0, 0])
    assert bench.lane._looks_at > time.monotonic()
    for number in (1, 2, 3, 4):
        await bench.end(number)
    assert bench.free == 5


async def test_a_claim_whose_answer_is_lost_is_given_back_before_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, 5, [job(1), job(2)])
    bench.lane._looks_at = time.monotonic() + 60
    bench.start(1)
    await bench.lane.step()
    bench.start(2)
    bench.fails = True
    with pytest.raises(DatabaseUnavailable):
        await bench.lane.step()
    assert bench.kept == []
    await bench.lane.step()
    assert (bench.kept, bench.waiting, bench.asked[-1]) == ([[1, 77]], [], None)
    monkeypatch.setattr(bench.lane, "_lost_claims_until", 0.0)
    monkeypatch.setattr(bench.lane, "_looks_at", 0.0)
    await bench.lane.step()
    assert len(bench.kept) == 1
    for number in (1, 2):
        await bench.end(number)


async def test_what_may_kill_its_worker_is_sent_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 4, [job(1, alone=True), job(2)])
    await bench.lane.step()
    bench.waiting.append(job(3, alone=True))
    await bench.lane.step()
    assert [one.id for one in bench.waiting] == [3]
    assert not bench.wake.is_set()
    await bench.end(1)
    assert bench.wake.is_set()
    await bench.lane.step()
    assert bench.waiting == []
    for number in (2, 3):
        await bench.end(number)


async def test_large_payloads_limit_what_is_claimed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    large = "x" * Settings().payload_max_bytes
    bench = Bench(monkeypatch, 1000, [job(number, payload=large) for number in range(300)])
    while bench.free > 1000 - 300 and not bench.lane._memory.is_full:
        await bench.lane.step()
    assert bench.waiting
    step = asyncio.create_task(bench.lane.step())
    await bench._turns()
    assert not step.done()
    for number in list(bench.posts):
        await bench.end(number)
    await step
    bench.lane.stop()
    for number in list(bench.posts):
        await bench.end(number)
    await bench.lane.drain()


async def test_a_stopping_lane_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 1, [job(1), job(2)])
    await bench.lane.step()
    step = asyncio.create_task(bench.lane.step())
    await bench._turns()
    bench.lane.stop()
    assert await step is False
    assert [one.id for one in bench.waiting] == [2]
    await bench.end(1)
    await bench.lane.drain()
