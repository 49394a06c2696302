"""Another session (psql, say) holds FOR UPDATE on one row: that row waits, everything else continues.

Every stage runs on a connection with a short lock timeout, so waiting for a lock fails the test.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import requeue
from hooksaga.operations.bulk_steps import step_bulk_operation
from hooksaga.operations.operational_events import store_dead_letter_events
from hooksaga.operations.prune import Pruning, prune_batch
from hooksaga.operations.watch_endpoints import count_attempts
from hooksaga.stages import deliver
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from hooksaga.stages.clean_leases import clean_leases
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.route_events import route_events
from hooksaga.worker.result_writer import ResultWriter
from tests.conftest import Connect, SessionOf
from tests.database import orchestrate
from tests.database.bulk_rows import backfill_of, dead_letters, old_events, requeue_of, started
from tests.database.seed import LAST_ATTEMPT, POLICY, WORKER, Seed, outcome
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


JOBS, SAGAS = "webhook_delivery_jobs", "webhook_delivery_sagas"


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
    writer = ResultWriter(session_of(Role.DELIVERY), WORKER, lambda _job_ids: None)
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
    writer = ResultWriter(session_of(Role.DELIVERY), WORKER, lambda _job_ids: None)
    async with locked(somebody, JOBS, job.id):
        writer.write(AttemptResult(job, outcome()))
        writing = asyncio.create_task(writer.run())

        async def is_kept() -> bool:
            return bool(writer._locked)

        await until(is_kept)
        writer.stop()
    await writing
    assert await states(seed) == {job.id: "Completed"}


@pytest.mark.guarantee(
    Promise.DATABASE, "somebody locks a subscription, or an event", "nothing waits, not even its own"
)
@pytest.mark.parametrize("table", ["events", "subscriptions"])
async def test_a_locked_event_or_subscription_stops_no_stage(
    stage_of: StageOf, somebody: Connection, seed: Seed, table: str
) -> None:
    """From its routing to its dead letter, and through a requeue: what names it takes no lock on it."""
    subscription_id, other = await seed.subscription("a"), await seed.subscription("a")
    event_id = await seed.event("a")
    router, orchestrator = await stage_of(Role.ROUTER), await stage_of(Role.ORCHESTRATOR)
    worker, operator = await stage_of(Role.DELIVERY), await stage_of(Role.ADMIN)
    async with locked(somebody, table, event_id if table == "events" else subscription_id):
        routed = await route_events(router)
        assert (routed.event_ids, len(routed.saga_ids)) == ([event_id], 2)
        moves = await orchestrate.start_all(orchestrator, LAST_ATTEMPT)
        assert [move.subscription_id for move in moves] == [subscription_id, other]
        job_ids = [move.job_id for move in moves if move.job_id]
        jobs = await deliver.claim_jobs(worker, job_ids, worker_id=WORKER, lease_seconds=60)
        results = [AttemptResult(job, outcome("http_503")) for job in jobs]
        assert len(await deliver.record_results(worker, results, worker_id=WORKER)) == 2
        dead = await orchestrate.apply_results(orchestrator, LAST_ATTEMPT)
        assert [move.status for move in dead] == [SagaStatus.DEAD_LETTERED] * 2
        letters = [move.dead_letter_id for move in dead if move.dead_letter_id]
        assert [one.created for one in await requeue.requeue_dead_letters(operator, letters)] == [True, True]


@pytest.mark.parametrize("named", [False, True])
async def test_events_are_routed_around_a_locked_row_of_the_outbox(
    stage_of: StageOf, somebody: Connection, seed: Seed, named: bool
) -> None:
    await seed.subscription("a")
    first, second = await seed.event("a"), await seed.event("a")
    event_ids = [first, second] if named else None
    router = await stage_of(Role.ROUTER)
    async with locked(somebody, "routing_outbox", first, "event_id"):
        routed = await route_events(router, event_ids=event_ids)
        assert (routed.event_ids, routed.events[0].more) == ([second], False)
        assert (await route_events(router, event_ids=event_ids)).event_ids == []
    assert (await route_events(router, event_ids=event_ids)).event_ids == [first]


@pytest.mark.parametrize("named", [False, True])
async def test_attempts_are_started_around_a_locked_saga(
    stage_of: StageOf, somebody: Connection, seed: Seed, named: bool
) -> None:
    first, second = await seed.saga(), await seed.saga()
    orchestrator = await stage_of(Role.ORCHESTRATOR)

    async def start() -> list[int]:
        if named:
            moves = await orchestrate.start_attempts_of(orchestrator, POLICY, [first, second])
        else:
            moves = await orchestrate.start_all(orchestrator, POLICY)
        return [move.saga_id for move in moves]

    async with locked(somebody, SAGAS, first):
        assert await start() == [second]
        assert await start() == []
    assert await start() == [first]


async def test_retries_are_started_around_a_locked_saga(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    first, second = [await seed.saga(SagaStatus.PENDING_RETRY) for _ in range(2)]
    for saga_id in (first, second):
        await seed.make_due(saga_id)
    orchestrator = await stage_of(Role.ORCHESTRATOR)
    async with locked(somebody, SAGAS, first):
        moves = await orchestrate.start_all(orchestrator, POLICY)
        assert [move.saga_id for move in moves] == [second]
    moves = await orchestrate.start_all(orchestrator, POLICY)
    assert [move.saga_id for move in moves] == [first]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("table", [JOBS, SAGAS])
async def test_results_are_taken_around_a_locked_saga_and_beside_a_locked_job(
    stage_of: StageOf, somebody: Connection, seed: Seed, table: str, named: bool
) -> None:
    pairs: list[tuple[int, int]] = []
    for _ in range(3):
        saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
        job_id = await seed.active_job(saga_id)
        await seed.finish(job_id, "http_503")
        pairs.append((saga_id, job_id))
    orchestrator = await stage_of(Role.ORCHESTRATOR)
    job_ids = [job_id for _, job_id in pairs] if named else None

    async def take() -> list[tuple[int, int | None]]:
        moves = await orchestrate.apply_results(orchestrator, LAST_ATTEMPT, job_ids=job_ids)
        assert {move.status for move in moves} <= {SagaStatus.DEAD_LETTERED}
        return sorted((move.saga_id, move.job_id or 0) for move in moves)

    async with locked(somebody, table, pairs[1][table == JOBS]):
        assert await take() == (pairs if table == JOBS else [pairs[0], pairs[2]])
        assert await take() == []
    assert await take() == ([] if table == JOBS else [pairs[1]])


@pytest.mark.parametrize("named", [False, True])
async def test_results_that_change_a_flow_are_applied_around_a_locked_one(
    stage_of: StageOf, somebody: Connection, seed: Seed, named: bool
) -> None:
    """A flow is written only with all results that it was computed from: it is computed again from the others."""
    subscription_id = await seed.subscription("a")
    sagas, job_ids = list[int](), list[int]()
    for _ in range(3):
        sagas.append(await seed.saga(SagaStatus.IN_PROGRESS, subscription_id))
        job_ids.append(await seed.active_job(sagas[-1]))
        await seed.finish(job_ids[-1], "http_503")
    orchestrator, left = await stage_of(Role.ORCHESTRATOR), list[int]()

    async def take() -> list[int]:
        ids = job_ids if named else None
        moves = await orchestrate.apply_results(orchestrator, POLICY, job_ids=ids, on_left=left.append)
        return sorted(move.job_id or 0 for move in moves)

    failures = "SELECT failures_in_a_row FROM subscription_flow WHERE subscription_id = %s"
    async with locked(somebody, SAGAS, sagas[1]):
        assert await take() == [job_ids[0], job_ids[2]]
        assert await seed.value(failures, [subscription_id]) == 2
    assert await take() == [job_ids[1]]
    assert await seed.value(failures, [subscription_id]) == 3
    job_ids = [await seed.active_job(await seed.saga(SagaStatus.IN_PROGRESS, subscription_id))]
    await seed.finish(job_ids[0], "http_503")
    async with locked(somebody, "subscription_flow", subscription_id, "subscription_id"):
        assert (await take(), left) == ([], job_ids)
    assert await take() == job_ids


async def test_dead_letters_are_requeued_although_one_is_locked(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    first, second = await seed.dead_letter(), await seed.dead_letter()
    operator = await stage_of(Role.ADMIN)
    async with locked(somebody, "dead_letters", first):
        answers = await requeue.requeue_dead_letters(operator, [first, second])
    assert [answer.created for answer in answers] == [True, True]


@pytest.mark.parametrize(
    "table", ["bulk_operations", "bulk_operation_lanes", "dead_letters", "retention_state"]
)
async def test_bulk_operations_go_on_around_a_locked_row(
    stage_of: StageOf, somebody: Connection, seed: Seed, table: str
) -> None:
    first, second = await seed.subscription(), await seed.subscription()
    for subscription_id in (first, second):
        await dead_letters(seed, subscription_id, 1)
    operator = await stage_of(Role.ADMIN)
    blocked = await started(operator, requeue_of(subscription_id=first))
    free = await started(operator, requeue_of(subscription_id=second))
    letter = await seed.value("SELECT min(id) FROM dead_letters")
    key, row_id = {
        "bulk_operations": ("id", blocked.id),
        "bulk_operation_lanes": ("operation_id", blocked.id),
        "dead_letters": ("id", letter),
        "retention_state": ("only_row", True),
    }[table]

    async def step_all() -> set[int | None]:
        """Which operations have started a saga."""
        steps = [await step_bulk_operation(operator, horizon_seconds=3600) for _ in range(2)]
        return {step.operation_id for step in steps if step.saga_ids}

    async with locked(somebody, table, row_id, key):
        waits = {
            "bulk_operations": {blocked.id},
            "bulk_operation_lanes": {blocked.id},
            "dead_letters": set[int](),
            "retention_state": {blocked.id, free.id},
        }[table]
        assert await step_all() == {blocked.id, free.id} - waits
    assert await step_all() == waits


async def test_a_backfill_begins_when_the_horizon_is_free(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription()
    await old_events(seed, subscription_id, 1)
    operator = await stage_of(Role.ADMIN)
    operation = await started(operator, backfill_of(subscription_id))
    async with locked(somebody, "retention_state", True, "only_row"):
        step = await step_bulk_operation(operator, horizon_seconds=3600)
        assert (step.operation_id, step.saga_ids) == (operation.id, [])
    assert len((await step_bulk_operation(operator, horizon_seconds=3600)).saga_ids) == 1


async def test_dead_letters_are_told_of_around_a_locked_one(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    await seed.subscription("hooksaga.delivery.dead_lettered")
    first, _second = await seed.dead_letter(), await seed.dead_letter()
    monitor = await stage_of(Role.HEALTH_MONITOR)
    async with locked(somebody, "operational_outbox", first, "dead_letter_id"):
        assert len(await store_dead_letter_events(monitor)) == 1
        assert await store_dead_letter_events(monitor) == []
    assert len(await store_dead_letter_events(monitor)) == 1


async def test_attempts_are_counted_around_a_locked_health(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    """Its own are counted once the lock is gone, each once, with those that ended meanwhile."""
    first, second = await seed.subscription(), await seed.subscription()
    monitor = await stage_of(Role.HEALTH_MONITOR)

    async def fail(*subscription_ids: int) -> None:
        for subscription_id in subscription_ids:
            await seed.finish(await seed.job(subscription_id), "http_503")

    async def count(limit: int = 100) -> dict[int, int]:
        """Return the consecutive failures of each endpoint after counting."""
        await count_attempts(monitor, settle_seconds=0, limit=limit)
        rows = await seed.rows("SELECT subscription_id, consecutive_failures FROM subscription_health")
        return {row["subscription_id"]: row["consecutive_failures"] for row in rows}

    await fail(first, first, second)
    async with locked(somebody, "subscription_health", first, "subscription_id"):
        assert await count() == {first: 0, second: 1}
        await fail(first, second)
        assert await count() == {first: 0, second: 2}
        assert await count() == {first: 0, second: 2}
    await fail(second)
    assert await count(limit=2) == {first: 2, second: 3}
    assert await count(limit=2) == {first: 3, second: 3}
    assert await seed.rows("SELECT * FROM subscription_health_behind") == []
    await fail(first)
    assert await count() == {first: 4, second: 3}


async def test_a_finished_saga_is_pruned_around_a_locked_job(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    sagas = [await seed.make_old(await seed.saga(SagaStatus.COMPLETED)) for _ in range(2)]
    job_id = await seed.value("SELECT id FROM webhook_delivery_jobs WHERE saga_id = %s", [sagas[0]])
    operator = await stage_of(Role.ADMIN)

    async def left() -> list[int]:
        await prune_batch(operator, Pruning(timedelta(days=30)))
        return list(await states(seed, SAGAS))

    async with locked(somebody, JOBS, job_id):
        assert await left() == [sagas[0]]
    assert await left() == []


async def test_events_are_accepted_although_one_of_their_keys_is_locked(
    stage_of: StageOf, somebody: Connection, seed: Seed
) -> None:
    known, new = (EventDraft("a", "{}", external_id=key) for key in ("known", "new"))
    (first,) = await seed.accept(known)
    ingest = await stage_of(Role.INGEST)
    async with locked(somebody, "events", first.id), locked(somebody, "routing_outbox", first.id, "event_id"):
        answers = [one for one in await accept_events(ingest, [known, new]) if isinstance(one, AcceptedEvent)]
        assert [one.duplicate for one in answers] == [True, False]
        assert answers[0].id == first.id
