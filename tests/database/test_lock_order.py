"""Rows are locked in id order, sagas before jobs, and what somebody holds is passed by where any row will do.

Where two have to wait for each other, each test lets one hold the row that must come first, starts the other with the
rows in the wrong order, and sees that it waits with empty hands: else two of them would deadlock.
"""

import asyncio
from typing import LiteralString

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import requeue
from hooksaga.stages.accept_events import accept_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.seed import POLICY, Seed, until_blocked

LOCK_SAGA: LiteralString = "SELECT id FROM webhook_delivery_sagas WHERE id = %s FOR UPDATE NOWAIT"
LOCK_JOB: LiteralString = "SELECT id FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE NOWAIT"


@pytest.fixture
async def holder(connect: Connect) -> Connection:
    """Holds the row that comes first."""
    return await connect(Role.OWNER)


@pytest.fixture
async def stage(connect: Connect) -> Connection:
    """Runs the stage that has to wait, with the plans of big tables: row by row, in the order given."""
    connection = await connect(Role.OWNER)
    for plan in ("seqscan", "hashjoin", "mergejoin", "bitmapscan"):
        await connection.execute(f"SET enable_{plan} = off".encode())
    return connection


async def is_free(connection: Connection, lock: LiteralString, row_id: int) -> bool:
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute(lock, [row_id])
    except errors.LockNotAvailable:
        return False
    return True


async def test_a_saga_that_is_held_is_passed_by_with_its_job_untouched(
    holder: Connection, stage: Connection, seed: Seed
) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
    job_id = await seed.active_job(saga_id)
    await seed.finish(job_id)
    async with holder.transaction():
        await holder.execute(LOCK_SAGA, [saga_id])
        assert await orchestrate.apply_results(stage, POLICY) == []
        assert await is_free(seed.connection, LOCK_JOB, job_id)


async def test_keys_are_inserted_in_key_order(holder: Connection, stage: Connection, seed: Seed) -> None:
    first, second = (EventDraft("a", "{}", external_id=key) for key in ("key-1", "key-2"))
    async with holder.transaction():
        await accept_events(holder, [first])
        task = asyncio.create_task(accept_events(stage, [second, first]))
        await until_blocked(seed.connection, stage)
        await seed.connection.execute("SET lock_timeout = '2s'")
        await seed.accept(second)  # would wait for ever for a stage that had inserted it already
    await task


async def test_dead_letters_are_requeued_in_id_order(
    holder: Connection, stage: Connection, seed: Seed
) -> None:
    first, second = await seed.dead_letter(), await seed.dead_letter()
    async with holder.transaction():
        await requeue.requeue_one(holder, first)
        task = asyncio.create_task(requeue.requeue_dead_letters(stage, [second, first]))
        await until_blocked(seed.connection, stage)
        await seed.connection.execute("SET lock_timeout = '2s'")
        assert (await requeue.requeue_one(seed.connection, second)).created
    assert [answer.created for answer in await task] == [False, False]


async def test_stages_over_the_same_rows_in_all_orders_never_deadlock(connect: Connect, seed: Seed) -> None:
    sagas = [await seed.saga() for _ in range(30)]
    crowd = [await connect(Role.ORCHESTRATOR) for _ in range(4)]
    orders = [sagas, sagas[::-1], sagas[15:] + sagas[:15], sagas[::2] + sagas[1::2]]
    for _ in range(5):
        await asyncio.gather(
            *(
                orchestrate.start_attempts_of(connection, POLICY, order)
                for connection, order in zip(crowd, orders, strict=True)
            )
        )
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await seed.value(deadlocks) == 0
