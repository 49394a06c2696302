"""No POST is begun that could outlive its lease, in either mode: the job is handed back and nothing is sent. And what
becomes of claims whose rows somebody has locked."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions.delivery import handler
from hooksaga.adapters.database import Role, Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.aws.function import Invocation
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.runtime.settings import Settings
from hooksaga.worker.delivery_lane import DeliveryLane, LaneParts
from hooksaga.worker.places import WorkerPlaces
from hooksaga.worker.result_writer import ResultWriter
from tests.conftest import Connect, SessionOf
from tests.database.seed import Seed
from tests.delivery.hostile_receiver import Authority, Receiver, receiver, well

WORKER_ID = "w1"


@dataclass
class Place:
    """A receiver that answers 200, a sender that trusts it, and the database."""

    receiving: Receiver
    sender: HttpSender
    session: Session
    seed: Seed

    async def job(self, own_timeout: float | None) -> int:
        wanted: dict[str, Any] = {} if own_timeout is None else {"timeout_seconds": own_timeout}
        subscription = await self.seed.subscription(callback_url=self.receiving.url(), **wanted)
        return await self.seed.job(subscription)

    async def lease_seconds(self, job_id: int) -> float:
        row = await self.seed.row(
            "SELECT lease_until, leased_at FROM webhook_delivery_jobs WHERE id = %s", [job_id]
        )
        return (row["lease_until"] - row["leased_at"]).total_seconds()

    async def state(self, job_id: int) -> tuple[str, str | None]:
        row = await self.seed.row(
            "SELECT status::text, worker_id FROM webhook_delivery_jobs WHERE id = %s", [job_id]
        )
        return row["status"], row["worker_id"]

    def lane(self, settings: Settings, session: Any = None, places: int = 4) -> DeliveryLane:
        writer = ResultWriter(self.session, WORKER_ID, lambda _job_ids: None)
        parts = LaneParts(writer, settings, self.sender, self.seed.box, WORKER_ID, WorkerPlaces(places, 1))
        return DeliveryLane(slow=False, session=session or self.session, wake=asyncio.Event(), parts=parts)


@pytest.fixture
async def place(seed: Seed, session_of: SessionOf, tmp_path: Path) -> AsyncIterator[Place]:
    authority = Authority(tmp_path / "ca.pem")
    sender = HttpSender(AddressPolicy.parse("127.0.0.0/8"), ca_file=str(authority.ca_file))
    async with receiver(well, authority.tls()) as receiving:
        yield Place(receiving, sender, session_of(Role.DELIVERY), seed)
        await sender.close()


@pytest.mark.parametrize(
    ("waited", "own_timeout", "default_timeout", "lease", "is_sent"),
    [
        (0.0, None, 15, 60, True),
        (1.5, None, 15, 60, True),
        (1.0, None, 30, 30.5, False),
        (0.0, None, 30, 30.5, True),
        (1.0, 30, 1, 30.5, False),
        (1.0, 1, 30, 30.5, True),
    ],
)
async def test_polling_mode_begins_no_post_that_could_outlive_its_lease(
    place: Place,
    waited: float,
    own_timeout: float | None,
    default_timeout: float,
    lease: float,
    is_sent: bool,
) -> None:
    """The settings that are checked at the start never come so close; this guard does not rely on them."""
    settings = Settings().model_copy(update={"http_timeout_seconds": default_timeout, "lease_seconds": lease})
    job_id = await place.job(own_timeout)
    (job,) = await place.seed.claim(job_id, worker_id=WORKER_ID, lease_seconds=lease)
    await place.lane(settings)._deliver(job, time.monotonic() - waited)
    assert len(place.receiving.requests) == is_sent
    assert await place.state(job_id) == (("Leased", WORKER_ID) if is_sent else ("Pending", None))


async def test_polling_mode_counts_a_lease_from_before_its_claim(place: Place) -> None:
    """A claim whose answer comes late has used up its lease meanwhile."""

    class LateSession:
        async def run(self, unit: Callable[..., Awaitable[Any]]) -> Any:
            answer = await place.session.run(unit)
            await asyncio.sleep(0.2)
            return answer

    settings = Settings().model_copy(update={"http_timeout_seconds": 30, "lease_seconds": 30.1})
    job_id = await place.job(None)
    lane = place.lane(settings, LateSession())
    assert not await lane.step()
    await lane.drain()
    assert place.receiving.requests == []
    assert await place.state(job_id) == ("Pending", None)


async def test_polling_mode_leases_for_as_long_as_is_set(place: Place) -> None:
    job_id = await place.job(None)
    lane = place.lane(Settings(lease_seconds=50))
    await lane.step()
    await lane.drain()
    assert len(place.receiving.requests) == 1
    assert await place.lease_seconds(job_id) == pytest.approx(50, abs=0.05)


class Context:
    """Lambda's, as far as it is used."""

    aws_request_id = "request"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


def function_of(place: Place, settings: Settings) -> Any:
    parts = {"session": place.session, "sender": place.sender, "box": place.seed.box, "queues": None}
    return SimpleNamespace(settings=settings, **parts)


async def test_a_function_leases_for_as_long_as_is_set(place: Place) -> None:
    job_id = await place.job(None)
    claimed, unknown = await handler._claim(function_of(place, Settings(lease_seconds=50)), [job_id], 2)
    assert ([job.id for job in claimed], unknown) == ([job_id], set())
    assert await place.lease_seconds(job_id) == pytest.approx(50, abs=0.05)


@pytest.mark.parametrize(
    ("own_timeout", "default_timeout", "is_sent"),
    [(None, 9, True), (None, 11, False), (11, 9, False), (9, 11, True)],
)
async def test_a_function_begins_no_post_that_could_outlive_itself(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    own_timeout: float | None,
    default_timeout: float,
    is_sent: bool,
) -> None:
    """It ends before its leases do (check_times). 12 s are left, 2 of them to write results."""

    async def tell_nobody(*_: Any) -> None:
        pass

    monkeypatch.setattr(handler, "wake_orchestrator_for_results", tell_nobody)
    function = function_of(place, Settings(http_timeout_seconds=default_timeout))
    job_id = await place.job(own_timeout)
    jobs = await place.seed.claim(job_id, worker_id=handler.WORKER_ID)
    left = await handler._deliver(function, Invocation({}, Context(12)), jobs)
    assert len(place.receiving.requests) == is_sent
    assert left == (set() if is_sent else {job_id})
    assert await place.state(job_id) == (("Completed", handler.WORKER_ID) if is_sent else ("Pending", None))


async def test_a_locked_job_leaves_its_place_to_the_next(place: Place, connect: Connect) -> None:
    """Somebody may hold it for hours."""
    subscription = await place.seed.subscription(callback_url=place.receiving.url())
    first, second = await place.seed.jobs(subscription, 2)
    lane = place.lane(Settings(), places=1)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [first])
        assert await lane.step() is True
        assert await place.state(first) == ("Pending", None)
        assert await place.state(second) == ("Leased", WORKER_ID)
    await lane.step()
    assert await place.state(first) == ("Leased", WORKER_ID)
    await lane.drain()


async def tell_nobody(*_: Any) -> None:
    pass


async def test_a_function_writes_a_result_when_the_lock_on_its_row_goes(
    place: Place, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "wake_orchestrator_for_results", tell_nobody)
    first, second = await place.job(None), await place.job(None)
    jobs = await place.seed.claim(first, second, worker_id=handler.WORKER_ID)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [first])
        function = function_of(place, Settings())
        delivering = asyncio.create_task(handler._deliver(function, Invocation({}, Context(40)), jobs))
        async with asyncio.timeout(10):
            while await place.state(second) != ("Completed", handler.WORKER_ID):
                await asyncio.sleep(0.01)
        assert not delivering.done()
    assert await delivering == set()
    assert await place.state(first) == ("Completed", handler.WORKER_ID)
    assert len(place.receiving.requests) == 2


async def test_a_function_whose_time_is_over_gives_the_message_of_a_locked_job_back(
    place: Place, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "wake_orchestrator_for_results", tell_nobody)
    first, second = await place.job(None), await place.job(None)
    jobs = await place.seed.claim(first, second, worker_id=handler.WORKER_ID)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [first])
        function = function_of(place, Settings())
        assert await handler._attempt_all(function, Invocation({}, Context(2.5)), jobs) == {first}
    assert await place.state(second) == ("Completed", handler.WORKER_ID)
