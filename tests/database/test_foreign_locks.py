"""Somebody, with psql say, holds FOR UPDATE on one row: that row waits, everything else goes on.

Every stage runs on a connection that gives up soon where it has to wait for a lock, and so fails the test.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from psycopg import sql

from infra.local.result_writer import ResultWriter
from shared.adapters.database import Connection, Role
from shared.stages import deliver
from shared.stages.clean_leases import clean_leases
from shared.stages.deliver import AttemptResult
from tests.conftest import Connect, SessionOf
from tests.database.seed import WORKER, Seed, outcome
from tests.faults.promises import Promise

StageOf = Callable[[Role], Awaitable[Connection]]


@pytest.fixture
def stage_of(connect: Connect) -> StageOf:
    async def stage_of(role: Role) -> Connection:
        connection = await connect(role)
        await connection.execute("SET lock_timeout = '500ms'")
        return connection

    return stage_of


@pytest.fixture
async def somebody(connect: Connect) -> Connection:
    """An operator."""
    return await connect(Role.OWNER)


@asynccontextmanager
async def locked(somebody: Connection, table: str, row_id: int, key: str = "id") -> AsyncIterator[None]:
    """Inside, the row is locked by somebody."""
    async with somebody.transaction():
        query = sql.SQL("SELECT FROM {} WHERE {} = %s FOR UPDATE")
        cursor = await somebody.execute(query.format(sql.Identifier(table), sql.Identifier(key)), [row_id])
        assert cursor.rowcount == 1
        yield


async def states(seed: Seed, table: str = "webhook_delivery_jobs") -> dict[int, str]:
    query = sql.SQL("SELECT id, status::text FROM {} ORDER BY id").format(sql.Identifier(table))
    cursor = await seed.connection.execute(query)
    return dict(await cursor.fetchall())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 10
    while not await condition():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.01)


JOBS = "webhook_delivery_jobs"


@pytest.mark.guarantee(
    Promise.DATABASE, "somebody locks the row of a claimed job", "only its own delivery waits"
)
async def test_results_are_written_around_a_locked_job(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    claimed = await seed.claim(*[await seed.job() for _ in range(3)])
    results = [AttemptResult(job, outcome()) for job in claimed]
    worker = await stage_of(Role.DELIVERY)
    held, told = claimed[1].id, list[int]()

    async def record() -> set[int]:
        return await deliver.record_results(worker, results, worker_id=WORKER, on_locked=told.append)

    async with locked(somebody, JOBS, held):
        assert await record() == {claimed[0].id, claimed[2].id}
        assert told == [held]
        assert await record() == set()
        assert told == [held, held]
    assert await record() == {held}
    assert told == [held, held]
    assert set((await states(seed)).values()) == {"Completed"}


async def test_a_late_result_is_not_taken_for_a_locked_one(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    (job,) = await seed.claim(await seed.job())
    await seed.expire_lease(job.id)
    await clean_leases(seed.connection, max_lost_leases=5)
    told: list[int] = []
    async with locked(somebody, JOBS, job.id):
        results = [AttemptResult(job, outcome())]
        worker = await stage_of(Role.DELIVERY)
        written = await deliver.record_results(worker, results, worker_id=WORKER, on_locked=told.append)
    assert (written, told) == (set(), [])


async def test_jobs_are_handed_back_around_a_locked_one(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    claimed = await seed.claim(*[await seed.job() for _ in range(3)])
    worker = await stage_of(Role.DELIVERY)
    async with locked(somebody, JOBS, claimed[1].id):
        left = await deliver.hand_back_jobs(worker, claimed, worker_id=WORKER)
        assert left == [claimed[1]]
        assert list((await states(seed)).values()) == ["Pending", "Leased", "Pending"]
    assert await deliver.hand_back_jobs(worker, left, worker_id=WORKER) == []
    assert set((await states(seed)).values()) == {"Pending"}


async def test_a_claim_and_the_lease_cleaner_pass_a_locked_job_by(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    first, second = await seed.job(), await seed.job()
    worker, cleaner = await stage_of(Role.DELIVERY), await stage_of(Role.LEASE_CLEANER)

    async def claim() -> list[int]:
        jobs = await deliver.claim_jobs(worker, [first, second], worker_id=WORKER, lease_seconds=60)
        return [job.id for job in jobs]

    async with locked(somebody, JOBS, first):
        assert await claim() == [second]
    assert await claim() == [first]
    for job_id in (first, second):
        await seed.expire_lease(job_id)
    async with locked(somebody, JOBS, first):
        assert [reset.id for reset in await clean_leases(cleaner, max_lost_leases=5)] == [second]
    assert [reset.id for reset in await clean_leases(cleaner, max_lost_leases=5)] == [first]


@pytest.mark.guarantee(
    Promise.ARRIVES,
    "somebody locks the row of a job while it is sent, until its lease is over",
    "its result is written as the lock goes; sent once",
)
async def test_a_result_in_hand_is_written_although_its_lease_is_over(
    stage_of: StageOf, session_of: SessionOf, somebody: Connection, seed: Seed
) -> None:
    first, second = await seed.claim(await seed.job(), await seed.job())
    writer = ResultWriter(session_of(Role.DELIVERY), WORKER, asyncio.Event())
    cleaner = await stage_of(Role.LEASE_CLEANER)
    writing = asyncio.create_task(writer.run())
    await seed.expire_lease(first.id)
    async with locked(somebody, JOBS, first.id):
        for job in (first, second):
            writer.write(AttemptResult(job, outcome()))

        async def second_is_done() -> bool:
            return (await states(seed))[second.id] == "Completed"

        await until(second_is_done)
        assert writer.in_hand == [first.id]
    assert await clean_leases(cleaner, max_lost_leases=1, in_hand=[first.id]) == []

    async def first_is_done() -> bool:
        return (await states(seed))[first.id] == "Completed"

    await until(first_is_done)
    writer.stop()
    await writing
    assert writer.in_hand == []


async def test_a_writer_that_stops_writes_what_was_locked(
    session_of: SessionOf, somebody: Connection, seed: Seed
) -> None:
    (job,) = await seed.claim(await seed.job())
    writer = ResultWriter(session_of(Role.DELIVERY), WORKER, asyncio.Event())
    async with locked(somebody, JOBS, job.id):
        writer.write(AttemptResult(job, outcome()))
        writing = asyncio.create_task(writer.run())

        async def is_kept() -> bool:
            return bool(writer._locked)

        await until(is_kept)
        writer.stop()
    await writing
    assert await states(seed) == {job.id: "Completed"}
