"""Claims and results in the database: one worker for one job, one result for one claim. Nothing is sent here."""

import asyncio
import json
import random
from typing import Any

import pytest
from msgspec.structs import replace
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import RefusedRow
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.requeue import requeue_one
from hooksaga.stages import deliver
from hooksaga.stages.clean_leases import clean_leases
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.own_headers import open_headers
from tests.conftest import Connect
from tests.database import bulk_rows, orchestrate
from tests.database.seed import POLICY, Seed, outcome
from tests.faults.promises import Promise


@pytest.fixture
async def worker(connect: Connect) -> Connection:
    return await connect(Role.DELIVERY)


async def claim(connection: Connection, *job_ids: int, worker_id: str = "w1") -> list[ClaimedJob]:
    return await deliver.claim_jobs(connection, job_ids, worker_id=worker_id, lease_seconds=60)


async def record(
    connection: Connection, job: ClaimedJob, worker_id: str = "w1", error_code: str | None = None, **how: Any
) -> set[int]:
    result = AttemptResult(job, outcome(error_code, **how))
    return await deliver.record_results(connection, [result], worker_id=worker_id)


async def job_row(seed: Seed, job_id: int) -> dict[str, Any]:
    return await seed.row(
        "SELECT *, status::text AS state, host(resolved_ip) AS ip FROM webhook_delivery_jobs WHERE id = %s",
        [job_id],
    )


async def lose_lease(seed: Seed, job_id: int) -> None:
    await seed.expire_lease(job_id)
    (reset,) = await clean_leases(seed.connection, max_lost_leases=5)
    assert (reset.id, reset.status) == (job_id, "Pending")


@pytest.mark.guarantee(Promise.FENCED, "eight workers claiming the same jobs at once", "each job held once")
async def test_eight_workers_never_hold_one_job_twice(connect: Connect, seed: Seed) -> None:
    job_ids = await seed.jobs(await seed.subscription(), 1000)
    crowd = [await connect(Role.DELIVERY) for _ in range(8)]

    async def take_everything(connection: Connection, name: str) -> list[int]:
        wanted = random.Random(name).sample(job_ids, len(job_ids))
        mine: list[int] = []
        for start in range(0, len(wanted), 50):
            mine += [job.id for job in await claim(connection, *wanted[start : start + 50], worker_id=name)]
        return mine

    taken = await asyncio.gather(*(take_everything(crowd[n], f"w{n}") for n in range(8)))
    assert sorted(job_id for some in taken for job_id in some) == job_ids
    assert await seed.rows("SELECT DISTINCT claim_count FROM webhook_delivery_jobs") == [{"claim_count": 1}]


async def test_a_claim_names_its_worker_and_ends(worker: Connection, seed: Seed) -> None:
    job_id = await seed.job()
    (job,) = await deliver.claim_jobs(worker, [job_id], worker_id="w1", lease_seconds=7.5)
    row = await job_row(seed, job_id)
    assert (row["state"], row["worker_id"], row["claim_count"]) == ("Leased", "w1", 1)
    assert (row["lease_until"] - row["leased_at"]).total_seconds() == pytest.approx(7.5, abs=0.01)
    assert job.lease_until == row["lease_until"]


async def test_of_jobs_that_their_workers_did_not_survive_one_is_claimed(
    worker: Connection, seed: Seed
) -> None:
    """One of them may be what the workers died of, and must not take its neighbours with it again."""
    fresh, first, second, other = await seed.jobs(await seed.subscription(), 4)
    await seed.rewrite(
        "UPDATE webhook_delivery_jobs SET claim_count = 2, lost_leases = 2, worker_id = 'dead' WHERE id = ANY (%s)",
        [[first, second]],
    )
    claimed = await deliver.claim_jobs(
        worker, [fresh, first, second, other], worker_id="w1", lease_seconds=60, one_alone=False
    )
    assert [job.id for job in claimed] == [fresh, other]
    (alone,) = await claim(worker, first, second)
    assert (alone.id, alone.claim_count, alone.alone) == (first, 3, True)
    assert (await job_row(seed, second))["state"] == "Pending"
    assert [job.id for job in await claim(worker, first, second)] == [second]


async def test_a_job_that_was_handed_back_again_and_again_is_no_suspect(
    worker: Connection, seed: Seed
) -> None:
    jobs = await seed.jobs(await seed.subscription(), 2)
    for _ in range(3):
        held = await claim(worker, *jobs)
        await deliver.hand_back_jobs(worker, held, worker_id="w1")
    again = await claim(worker, *jobs)
    assert [(job.id, job.claim_count, job.alone) for job in again] == [(job_id, 4, False) for job_id in jobs]


@pytest.mark.parametrize(("max_lost_leases", "alone_from"), [(1, 1), (2, 1), (3, 2), (5, 2), (100, 2)])
def test_the_last_claim_of_a_job_is_one_alone(max_lost_leases: int, alone_from: int) -> None:
    assert deliver.alone_from_lost(max_lost_leases) == alone_from


async def test_a_job_that_is_not_waiting_is_not_claimed(worker: Connection, seed: Seed) -> None:
    leased, ended, waiting = await seed.job(), await seed.job(), await seed.job()
    await seed.claim(leased)
    await seed.finish(ended)
    assert [job.id for job in await claim(worker, leased, ended, waiting, 10**12)] == [waiting]


async def test_a_job_that_another_claim_is_taking_is_left_to_it(connect: Connect, seed: Seed) -> None:
    first, second = await connect(Role.DELIVERY), await connect(Role.DELIVERY)
    job_id = await seed.job()
    async with first.transaction():
        assert len(await claim(first, job_id)) == 1
        assert await claim(second, job_id) == []


PAYLOAD = '{ "a":1.10, "a" : 12345678901234567890, "nul":"\\u0000" }'


async def test_a_claim_carries_what_is_to_be_sent(worker: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription(
        "a.b", "https://r.example.com/x", headers={"x-a": "1"}, timeout_seconds=3.0
    )
    job_id = await seed.job(subscription_id, PAYLOAD)
    (job,) = await claim(worker, job_id)
    assert (job.payload, job.event_type, job.attempt_number) == (PAYLOAD, "a.b", 1)
    assert (job.callback_url, job.timeout_seconds) == ("https://r.example.com/x", 3)
    stored = json.loads(job.headers)
    assert list(stored) == ["x-a"]
    assert set(stored["x-a"]) == {"sealed"}
    assert open_headers(seed.box, stored) == {"x-a": "1"}
    assert job.deliverable
    assert [seed.box.open(sealed) for sealed in job.secrets or []] == [seed.secrets[subscription_id]]


async def header_of_next_claim(seed: Seed, worker: Connection, subscription_id: int) -> str | None:
    """The header of the request that the next attempt of the subscription sends."""
    await orchestrate.start_all(seed.connection, POLICY)
    (job,) = await deliver.claim_waiting_jobs(worker, slow=False, limit=9, worker_id="w1", lease_seconds=60)
    assert job.subscription_id == subscription_id
    await record(worker, job)
    await orchestrate.apply_results(seed.connection, POLICY)
    headers = deliver.build_request(job, seed.box, timeout_seconds=1, timestamp=1).headers
    return headers.get("hooksaga-started-by")


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_request_names_what_started_its_delivery(
    worker: Connection, seed: Seed, ordered: bool
) -> None:
    subscription_id = await seed.subscription(ordered=ordered)
    await seed.saga(subscription_id=subscription_id)
    assert await header_of_next_claim(seed, worker, subscription_id) is None
    (letter, _) = [await seed.dead_letter(subscription_id) for _ in range(2)]
    await requeue_one(seed.connection, letter)
    assert await header_of_next_claim(seed, worker, subscription_id) == "requeue"
    await bulk_rows.started(seed.connection, bulk_rows.requeue_of())
    assert await bulk_rows.step_until_nothing_is_left(seed.connection) == 1
    assert await header_of_next_claim(seed, worker, subscription_id) == "requeue"
    await bulk_rows.old_events(seed, subscription_id, 1)
    await bulk_rows.started(seed.connection, bulk_rows.backfill_of(subscription_id))
    assert await bulk_rows.step_until_nothing_is_left(seed.connection) == 1
    assert await header_of_next_claim(seed, worker, subscription_id) == "backfill"


async def test_configuration_counts_from_the_next_claim_on(worker: Connection, seed: Seed) -> None:
    job_id = await seed.job(await seed.subscription())
    await seed.rewrite(
        "UPDATE subscriptions SET callback_url = 'https://new.example.com/', timeout_seconds = 9,"
        ' headers = \'{"x-new": "1"}\''
    )
    (job,) = await claim(worker, job_id)
    assert (job.callback_url, job.timeout_seconds) == ("https://new.example.com/", 9)
    assert job.headers == '{"x-new": "1"}'


@pytest.mark.parametrize("stopped", ["active = false", "verified = false", "deleted_at = now()"])
async def test_a_claim_sees_that_its_subscription_was_stopped(
    worker: Connection, seed: Seed, stopped: str
) -> None:
    job_id = await seed.job()
    await seed.connection.execute(f"UPDATE subscriptions SET {stopped}".encode())
    (job,) = await claim(worker, job_id)
    assert not job.deliverable


async def test_a_claim_brings_every_secret_that_is_still_valid_newest_first(
    worker: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription()
    await seed.connection.execute("UPDATE subscription_secrets SET expires_at = now() + interval '1 hour'")
    await seed.connection.execute(
        "INSERT INTO subscription_secrets (subscription_id, secret, expires_at)"
        " VALUES (%s, 'gone', now() - interval '1 second'), (%s, 'current', NULL)",
        [subscription_id] * 2,
    )
    (job,) = await claim(worker, await seed.job(subscription_id))
    assert job.secrets is not None
    assert (len(job.secrets), job.secrets[0]) == (2, "current")


async def test_a_result_is_written_whole(worker: Connection, seed: Seed) -> None:
    job_id = await seed.job()
    (job,) = await claim(worker, job_id)
    how = {"response_status": 503, "response_body": "busy \U0001f600", "response_truncated": True}
    how |= {"retry_after_seconds": 120, "resolved_ip": "2001:db8::1", "duration_ms": 42, "reconnected": True}
    assert await record(worker, job, error_code="http_503", **how) == {job_id}
    row = await job_row(seed, job_id)
    assert {name: row[name] for name in how if name != "resolved_ip"} | {"resolved_ip": row["ip"]} == how
    assert (row["state"], row["error_code"], row["lease_until"]) == ("Failed", "http_503", None)
    assert row["finished_at"] >= row["leased_at"]


async def test_a_result_leaves_the_saga_to_the_orchestrator(worker: Connection, seed: Seed) -> None:
    job_id = await seed.job()
    (job,) = await claim(worker, job_id)
    await record(worker, job)
    assert await seed.status_of(job.saga_id) is SagaStatus.IN_PROGRESS


async def test_a_result_counts_once(worker: Connection, seed: Seed) -> None:
    (job,) = await claim(worker, await seed.job())
    assert await record(worker, job, error_code="http_503") == {job.id}
    assert await record(worker, job) == set()
    assert (await job_row(seed, job.id))["state"] == "Failed"


@pytest.mark.guarantee(Promise.FENCED, "a result after the lease was reset")
async def test_a_result_after_the_lease_was_reset_is_dropped(worker: Connection, seed: Seed) -> None:
    (job,) = await claim(worker, await seed.job())
    await lose_lease(seed, job.id)
    assert await record(worker, job) == set()
    assert (await job_row(seed, job.id))["state"] == "Pending"


@pytest.mark.guarantee(Promise.FENCED, "a result of another worker")
async def test_a_result_of_another_worker_is_dropped(worker: Connection, seed: Seed) -> None:
    (job,) = await claim(worker, await seed.job(), worker_id="w1")
    assert await record(worker, job, "w2") == set()
    assert (await job_row(seed, job.id))["state"] == "Leased"


@pytest.mark.guarantee(Promise.FENCED, "a result of an earlier claim by a worker of the same name")
async def test_a_result_of_an_earlier_claim_of_the_same_worker_is_dropped(
    worker: Connection, seed: Seed
) -> None:
    (first,) = await claim(worker, await seed.job())
    await lose_lease(seed, first.id)
    (second,) = await claim(worker, first.id)
    assert (first.claim_count, second.claim_count) == (1, 2)
    assert await record(worker, first, error_code="http_503") == set()
    assert await record(worker, second) == {second.id}
    assert (await job_row(seed, second.id))["state"] == "Completed"


async def test_a_lease_that_is_over_but_not_reset_still_takes_its_result(
    worker: Connection, seed: Seed
) -> None:
    (job,) = await claim(worker, await seed.job())
    await seed.expire_lease(job.id)
    assert await record(worker, job) == {job.id}


async def test_late_results_do_not_take_their_neighbours_along(worker: Connection, seed: Seed) -> None:
    late, good = await claim(worker, await seed.job(), await seed.job())
    await lose_lease(seed, late.id)
    results = [AttemptResult(job, outcome()) for job in (late, good)]
    assert await deliver.record_results(worker, results, worker_id="w1") == {good.id}


POISON: list[tuple[str, dict[str, Any]]] = [
    ("a NUL in the text", {"response_body": "a\x00b"}),
    ("a status that HTTP does not have", {"response_status": 1000}),
    ("a status that no integer holds", {"response_status": 2**40}),
    ("a success without a status", {"response_status": None}),
    ("an address that is none", {"resolved_ip": "fe80::1%eth0"}),
    ("a wait that no integer holds", {"retry_after_seconds": 2**31}),
    ("a duration that no integer holds", {"duration_ms": 2**31}),
]


UNSENDABLE = pytest.param({"response_body": "\ud83d"}, id="half a surrogate pair in the text")


@pytest.mark.guarantee(Promise.ALONE, "a result that the database does not take")
@pytest.mark.parametrize("poison", [*(pytest.param(how, id=name) for name, how in POISON), UNSENDABLE])
async def test_a_poisoned_result_is_written_as_internal_error_alone(
    worker: Connection, seed: Seed, poison: dict[str, Any]
) -> None:
    jobs = await claim(worker, *[await seed.job() for _ in range(5)])
    results = [AttemptResult(job, outcome(**(poison if n == 2 else {}))) for n, job in enumerate(jobs)]
    told: list[RefusedRow] = []
    written = await deliver.record_results(worker, results, worker_id="w1", on_refusal=told.append)
    assert written == {job.id for job in jobs}
    assert [(row.job_id, row.saga_id) for row in told] == [(jobs[2].id, jobs[2].saga_id)]
    rows = [await job_row(seed, job.id) for job in jobs]
    assert [row["error_code"] for row in rows] == [None, None, "internal_error", None, None]


async def test_results_that_are_refused_in_every_form_leave_the_others_written(
    worker: Connection, seed: Seed
) -> None:
    jobs = await claim(worker, *[await seed.job() for _ in range(4)])
    await seed.connection.execute(
        sql.SQL("ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken CHECK ({}) NOT VALID").format(
            sql.SQL("status <> 'Failed' OR id NOT IN ({}, {})").format(jobs[1].id, jobs[3].id)
        )
    )
    results = [AttemptResult(job, outcome(response_status=500, error_code="http_500")) for job in jobs]
    told: list[RefusedRow] = []
    written = await deliver.record_results(worker, results, worker_id="w1", on_refusal=told.append)
    assert written == {jobs[0].id, jobs[2].id}
    assert [row.job_id for row in told] == [jobs[1].id, jobs[3].id]


async def test_an_error_word_that_is_too_long_is_replaced(worker: Connection, seed: Seed) -> None:
    (job,) = await claim(worker, await seed.job())
    await record(worker, job, error_code="x" * 101)
    assert (await job_row(seed, job.id))["error_code"] == "internal_error"


async def test_a_claim_that_is_handed_back_waits_again_at_once(worker: Connection, seed: Seed) -> None:
    (job,) = await claim(worker, await seed.job())
    await deliver.hand_back_jobs(worker, [job], worker_id="w1")
    assert (await job_row(seed, job.id))["lease_until"] is None
    (again,) = await claim(worker, job.id, worker_id="w2")
    assert again.claim_count == 2


async def test_a_worker_hands_back_what_it_holds_without_knowing(worker: Connection, seed: Seed) -> None:
    known, lost = await claim(worker, await seed.job(), await seed.job())
    (other,) = await claim(worker, await seed.job(), worker_id="w2")
    for slow, many in ((True, 0), (False, 1), (False, 0)):
        released = await deliver.hand_back_lost_claims(worker, worker_id="w1", slow=slow, in_hand=[known.id])
        assert released == many
    states = {job.id: (await job_row(seed, job.id))["state"] for job in (known, lost, other)}
    assert states == {known.id: "Leased", lost.id: "Pending", other.id: "Leased"}


@pytest.mark.parametrize(("worker_id", "behind"), [("w2", 0), ("w1", 1)])
async def test_only_the_holder_hands_a_claim_back(
    worker: Connection, seed: Seed, worker_id: str, behind: int
) -> None:
    (job,) = await claim(worker, await seed.job())
    stale = replace(job, claim_count=job.claim_count - behind)
    await deliver.hand_back_jobs(worker, [stale], worker_id=worker_id)
    assert (await job_row(seed, job.id))["state"] == "Leased"


async def look(connection: Connection, slow: bool = False, **options: Any) -> list[int]:
    """The ids of the jobs that one look claims, oldest first."""
    how = {"limit": 100, "worker_id": "w1", "lease_seconds": 60, **options}
    return [job.id for job in await deliver.claim_waiting_jobs(connection, slow=slow, **how)]


async def make_older(seed: Seed, job_id: int, seconds: float) -> int:
    await seed.rewrite(
        "UPDATE webhook_delivery_jobs SET attempt_at = attempt_at - make_interval(secs => %s) WHERE id = %s",
        [seconds, job_id],
    )
    return job_id


async def test_a_look_claims_the_oldest_whosever_they_are(worker: Connection, seed: Seed) -> None:
    crowd = await seed.jobs(await seed.subscription(), 20)
    older = [await make_older(seed, await seed.job(), 60), await make_older(seed, await seed.job(), 30)]
    assert await look(worker, limit=5) == sorted([*older, *crowd[:3]])
    assert await look(worker) == crowd[3:]
    assert await look(worker) == []


async def test_slow_jobs_wait_apart(worker: Connection, seed: Seed) -> None:
    slow, quick = await seed.subscription(), await seed.subscription()
    await seed.connection.execute(
        "UPDATE subscription_flow SET slow_until = now() + interval '1 minute' WHERE subscription_id = %s",
        [slow],
    )
    slow_jobs, quick_jobs = await seed.jobs(slow, 3), await seed.jobs(quick, 2)
    assert await look(worker) == quick_jobs
    assert await look(worker, slow=True) == slow_jobs


async def test_a_subscription_is_slow_for_a_time_only(worker: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    await seed.connection.execute("UPDATE subscription_flow SET slow_until = now() - interval '1 second'")
    jobs = await seed.jobs(subscription, 1)
    assert await look(worker, slow=True) == []
    assert await look(worker) == jobs


async def test_jobs_under_way_and_ended_are_not_claimed_again(worker: Connection, seed: Seed) -> None:
    await seed.claim(await seed.job())
    await seed.finish(await seed.job())
    retried = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(retried)
    (moved,) = await orchestrate.start_all(seed.connection, POLICY)
    assert await look(worker) == [moved.job_id]


async def test_a_look_passes_by_what_another_session_has_locked(
    worker: Connection, connect: Connect, seed: Seed
) -> None:
    first, second, third = await seed.jobs(await seed.subscription(), 3)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [first])
        assert await look(worker, limit=1) == [second]
    assert await look(worker, limit=2) == [first, third]


async def test_of_the_suspects_one_is_claimed_and_they_block_no_other(worker: Connection, seed: Seed) -> None:
    suspects = await seed.jobs(await seed.subscription(), 3)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET lost_leases = 2")
    others = await seed.jobs(await seed.subscription(), 4)
    assert await look(worker, limit=2, one_alone=False) == others[:2]
    assert await look(worker, limit=5) == [suspects[0], *others[2:]]
    assert await look(worker, one_alone=False) == []
    assert await look(worker) == [suspects[1]]
    (alone,) = await deliver.claim_waiting_jobs(worker, slow=False, limit=1, worker_id="w1", lease_seconds=60)
    assert (alone.id, alone.alone) == (suspects[2], True)
