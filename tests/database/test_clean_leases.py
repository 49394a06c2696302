"""What dead workers held comes back, the same row and the same attempt, but not for ever."""

import asyncio
from typing import Any, LiteralString

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import RefusedRow
from hooksaga.core.saga import JobStatus, SagaStatus
from hooksaga.stages import deliver
from hooksaga.stages.clean_leases import clean_leases, give_back_leases, lease_holders
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.seed import POLICY, WORKER, Seed, outcome
from tests.faults.promises import Promise


@pytest.fixture
async def cleaner(connect: Connect) -> Connection:
    return await connect(Role.LEASE_CLEANER)


async def job_row(seed: Seed, job_id: int) -> dict[str, Any]:
    return await seed.row(
        "SELECT *, status::text AS state FROM webhook_delivery_jobs WHERE id = %s", [job_id]
    )


async def expired(seed: Seed, subscription_id: int | None = None) -> int:
    job_id = await seed.job(subscription_id)
    await seed.claim(job_id, worker_id="dead")
    await seed.expire_lease(job_id)
    return job_id


async def test_an_expired_lease_makes_the_same_attempt_wait_again(cleaner: Connection, seed: Seed) -> None:
    job_id = await expired(seed)
    before = await job_row(seed, job_id)
    (reset,) = await clean_leases(cleaner, max_lost_leases=5)
    assert (reset.id, reset.saga_id, reset.worker_id) == (job_id, before["saga_id"], "dead")
    assert reset.lease_until == before["lease_until"]
    after = await job_row(seed, job_id)
    assert (after["state"], after["lease_until"], after["error_code"]) == ("Pending", None, None)
    unchanged = ("attempt_number", "attempt_at", "claim_count", "saga_id", "created_at")
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}


async def test_a_reset_costs_the_saga_no_attempt(cleaner: Connection, seed: Seed) -> None:
    await expired(seed)
    await clean_leases(cleaner, max_lost_leases=5)
    saga = await seed.row("SELECT status::text, attempt_count FROM webhook_delivery_sagas")
    assert saga == {"status": "InProgress", "attempt_count": 0}


async def test_a_reset_job_is_sent_to_the_queue_again(cleaner: Connection, seed: Seed) -> None:
    job_id = await expired(seed)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET dispatched_at = now()")
    await clean_leases(cleaner, max_lost_leases=5)
    assert (await job_row(seed, job_id))["dispatched_at"] is None


async def test_a_lease_that_runs_is_left_alone(cleaner: Connection, seed: Seed) -> None:
    running, waiting, ended = await seed.job(), await seed.job(), await seed.job()
    await seed.claim(running)
    await seed.finish(ended)
    assert await clean_leases(cleaner, max_lost_leases=5) == []
    assert (await job_row(seed, running))["state"] == "Leased"
    assert (await job_row(seed, waiting))["state"] == "Pending"


@pytest.mark.parametrize(
    ("lease_until", "resets"),
    [
        ("now() - interval '1 microsecond'", 1),
        ("now()", 0),
        ("now() + interval '1 microsecond'", 0),
        ("now() + interval '2 seconds'", 0),
    ],
)
async def test_a_lease_ends_at_its_time_and_not_before(
    seed: Seed, lease_until: LiteralString, resets: int
) -> None:
    """To the microsecond: in one transaction now() stands still."""
    job_id = await seed.job()
    await seed.claim(job_id)
    async with seed.connection.transaction():
        await seed.rewrite(f"UPDATE webhook_delivery_jobs SET lease_until = {lease_until}")
        assert len(await clean_leases(seed.connection, max_lost_leases=5)) == resets
    assert (await job_row(seed, job_id))["state"] == ("Pending" if resets else "Leased")


async def test_cleaning_twice_does_nothing_more(cleaner: Connection, seed: Seed) -> None:
    await expired(seed)
    assert len(await clean_leases(cleaner, max_lost_leases=5)) == 1
    assert await clean_leases(cleaner, max_lost_leases=5) == []


async def test_a_payload_that_kills_workers_ends_as_a_dead_letter(cleaner: Connection, seed: Seed) -> None:
    job_id = await seed.job(await seed.subscription(max_retry_limit=1))
    states: list[str] = []
    for _ in range(5):
        await seed.claim(job_id)
        await seed.expire_lease(job_id)
        (reset,) = await clean_leases(cleaner, max_lost_leases=5)
        states.append(reset.status)
    assert states == ["Pending"] * 4 + ["Failed"]
    row = await job_row(seed, job_id)
    assert (row["error_code"], row["claim_count"], row["lost_leases"]) == ("lease_expired", 5, 5)
    assert row["finished_at"] is not None
    (moved,) = await orchestrate.apply_results(seed.connection, POLICY)
    assert (moved.status, moved.final_error_code) == (SagaStatus.DEAD_LETTERED, "lease_expired")


@pytest.mark.guarantee(Promise.ARRIVES, "four claims handed back, and one lost lease", "the job waits again")
async def test_claims_that_were_handed_back_are_no_lost_leases(cleaner: Connection, seed: Seed) -> None:
    job_id = await seed.job(await seed.subscription(max_retry_limit=1))
    for _ in range(4):
        held = await seed.claim(job_id)
        assert [job.id for job in held] == [job_id]
        await deliver.hand_back_jobs(seed.connection, held, worker_id=WORKER)
    await seed.claim(job_id)
    await seed.expire_lease(job_id)
    (reset,) = await clean_leases(cleaner, max_lost_leases=5)
    assert (reset.status, reset.claim_count, reset.lost_leases) == (JobStatus.PENDING, 5, 1)


async def test_a_batch_is_bounded_and_takes_the_oldest_first(cleaner: Connection, seed: Seed) -> None:
    older, newer = await expired(seed), await expired(seed)
    await seed.rewrite(
        "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", [older]
    )
    assert [reset.id for reset in await clean_leases(cleaner, max_lost_leases=5, limit=1)] == [older]
    assert [reset.id for reset in await clean_leases(cleaner, max_lost_leases=5, limit=1)] == [newer]


async def test_cleaners_at_once_reset_each_lease_once(connect: Connect, seed: Seed) -> None:
    job_ids = await seed.jobs(await seed.subscription(), 300)
    await seed.claim(*job_ids)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 second'")
    crowd = [await connect(Role.LEASE_CLEANER) for _ in range(4)]

    async def drain(connection: Connection) -> list[int]:
        mine: list[int] = []
        while batch := await clean_leases(connection, max_lost_leases=5, limit=20):
            mine += [reset.id for reset in batch]
        return mine

    reset = [job_id for some in await asyncio.gather(*map(drain, crowd)) for job_id in some]
    assert sorted(reset) == job_ids


async def test_a_result_that_is_being_written_wins_over_the_cleaner(
    connect: Connect, cleaner: Connection, seed: Seed
) -> None:
    job_id = await expired(seed)
    writer = await connect(Role.OWNER)
    async with writer.transaction():
        await writer.execute(
            "UPDATE webhook_delivery_jobs SET status = 'Completed', lease_until = NULL, response_status = 200"
            " WHERE id = %s",
            [job_id],
        )
        assert await clean_leases(cleaner, max_lost_leases=5) == []
    assert await clean_leases(cleaner, max_lost_leases=5) == []
    assert (await job_row(seed, job_id))["state"] == "Completed"


async def test_thousands_of_dead_leases_come_back_in_bounded_batches_and_new_jobs_do_not_wait_for_them(
    cleaner: Connection, connect: Connect, seed: Seed
) -> None:
    """All workers died at once with everything that they held."""
    jobs = [job_id for _ in range(4) for job_id in await seed.jobs(await seed.subscription(), 500)]
    assert len(await seed.claim(*jobs, worker_id="dead")) == 2000
    await seed.rewrite("UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 minute'")
    worker = await connect(Role.DELIVERY)
    reset: list[int] = []
    for _ in range(4):
        batch = await clean_leases(cleaner, max_lost_leases=5)
        assert len(batch) == 500
        reset += [one.id for one in batch]
        fresh = await seed.job()
        (claimed,) = await deliver.claim_jobs(worker, [fresh], worker_id="alive", lease_seconds=60)
        assert claimed.claim_count == 1
    assert sorted(reset) == sorted(jobs)
    assert await clean_leases(cleaner, max_lost_leases=5) == []
    again = await deliver.claim_jobs(worker, jobs, worker_id="alive", lease_seconds=60)
    assert {job.claim_count for job in again} == {2}


# Workers that are gone


async def test_the_leases_of_gone_workers_are_given_back_before_they_end(
    cleaner: Connection, seed: Seed
) -> None:
    gone, living = [await seed.job(), await seed.job()], await seed.job()
    for job_id in gone:
        await seed.claim(job_id, worker_id="gone")
    await seed.claim(living, worker_id="living")
    before = await job_row(seed, living)
    assert sorted(await lease_holders(cleaner, but_for="own")) == ["gone", "living"]
    assert await lease_holders(cleaner, but_for="living") == ["gone"]
    resets = await give_back_leases(cleaner, worker_ids=["gone", "nobody"], max_lost_leases=5)
    assert [reset.id for reset in resets] == gone
    rows = [await job_row(seed, job_id) for job_id in gone]
    assert [(row["state"], row["lost_leases"], row["lease_until"]) for row in rows] == [
        ("Pending", 1, None)
    ] * 2
    assert await job_row(seed, living) == before
    assert await give_back_leases(cleaner, worker_ids=["gone"], max_lost_leases=5) == []
    assert await lease_holders(cleaner, but_for="own") == ["living"]


async def test_a_lease_that_is_given_back_counts_once_beside_one_that_ended(
    cleaner: Connection, seed: Seed
) -> None:
    job_id = await seed.job()
    await seed.claim(job_id, worker_id="gone")
    await seed.expire_lease(job_id)
    assert len(await clean_leases(cleaner, max_lost_leases=5)) == 1
    assert await give_back_leases(cleaner, worker_ids=["gone"], max_lost_leases=5) == []
    assert (await job_row(seed, job_id))["lost_leases"] == 1


async def test_a_gone_workers_last_lost_lease_fails_the_job(cleaner: Connection, seed: Seed) -> None:
    job_id = await seed.job()
    await seed.claim(job_id, worker_id="gone")
    (reset,) = await give_back_leases(cleaner, worker_ids=["gone"], max_lost_leases=1)
    row = await job_row(seed, job_id)
    assert (reset.status, row["state"], row["error_code"]) == ("Failed", "Failed", "lease_expired")


async def test_a_late_result_of_a_gone_worker_changes_nothing(cleaner: Connection, seed: Seed) -> None:
    """Its last statement may be carried out after its lease was given back, and after another's claim."""
    job_id = await seed.job()
    (claimed,) = await seed.claim(job_id, worker_id="gone")
    await give_back_leases(cleaner, worker_ids=["gone"], max_lost_leases=5)
    late = [deliver.AttemptResult(claimed, outcome())]
    assert await deliver.record_results(seed.connection, late, worker_id="gone") == set()
    await seed.claim(job_id, worker_id="next")
    assert await deliver.record_results(seed.connection, late, worker_id="gone") == set()
    assert (await job_row(seed, job_id))["state"] == "Leased"


async def test_jobs_that_the_database_does_not_let_go_stay_alone_and_are_all_told(
    cleaner: Connection, seed: Seed
) -> None:
    jobs = [await expired(seed) for _ in range(7)]
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken"
            " CHECK (status <> 'Pending' OR id NOT IN ({}, {})) NOT VALID"
        ).format(jobs[1], jobs[4])
    )
    told: list[RefusedRow] = []
    resets = await clean_leases(cleaner, max_lost_leases=5, on_refusal=told.append)
    assert sorted(reset.id for reset in resets) == [job for job in jobs if job not in (jobs[1], jobs[4])]
    assert [row.job_id for row in told] == [jobs[1], jobs[4]]
    assert {row.reason for row in told} == {
        "CheckViolation [23514], table webhook_delivery_jobs, constraint broken"
    }
    await seed.connection.execute("ALTER TABLE webhook_delivery_jobs DROP CONSTRAINT broken")
    assert [reset.id for reset in await clean_leases(cleaner, max_lost_leases=5)] == [jobs[1], jobs[4]]
