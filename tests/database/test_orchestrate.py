"""The orchestrator moves sagas: each move through the real stage, once, whoever else is at work."""

import asyncio
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role, fetch_dicts, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, NotFound, RowRefused
from hooksaga.core.saga import RetryPolicy, SagaStatus
from hooksaga.stages import start_attempts
from hooksaga.stages.flow_rows import flow_columns
from hooksaga.stages.saga_rows import SagaMoved
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.seed import LAST_ATTEMPT, POLICY, Seed

NO_JITTER = RetryPolicy(jitter=0)


async def finished(seed: Seed, error_code: str | None = None, **fields: Any) -> tuple[int, int]:
    """A saga InProgress whose job has ended, and that job."""
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS, await seed.subscription(**fields))
    job_id = await seed.active_job(saga_id)
    await seed.finish(job_id, error_code)
    return saga_id, job_id


async def wait_of(seed: Seed, saga_id: int) -> float:
    """Seconds between the failure and the next attempt; a slow statement changes the row a little later."""
    return await seed.value(
        "SELECT extract(epoch FROM next_attempt_at - updated_at)::float8 FROM webhook_delivery_sagas"
        " WHERE id = %s",
        [saga_id],
    )


async def test_a_pending_saga_gets_one_job_and_is_in_progress(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga()
    (moved,) = await orchestrate.start_all(orchestrator, POLICY)
    assert (moved.saga_id, moved.status, moved.attempt_count) == (saga_id, SagaStatus.IN_PROGRESS, 0)
    job = await seed.row("SELECT * FROM webhook_delivery_jobs WHERE id = %s", [moved.job_id])
    saga = await seed.row("SELECT * FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    assert (job["saga_id"], job["status"], job["attempt_number"]) == (saga_id, "Pending", 1)
    assert job["subscription_id"] == saga["subscription_id"]
    assert job["attempt_at"] == saga["next_attempt_at"]
    assert await orchestrate.start_all(orchestrator, POLICY) == []


async def test_a_success_completes_the_saga_and_nothing_else_happens_to_it(
    orchestrator: Connection, seed: Seed
) -> None:
    saga_id, job_id = await finished(seed)
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert (moved.status, moved.attempt_count, moved.job_id) == (SagaStatus.COMPLETED, 1, job_id)
    assert await seed.status_of(saga_id) is SagaStatus.COMPLETED
    assert await seed.value("SELECT count(*) FROM dead_letters") == 0


async def test_a_failure_waits_for_the_backoff(orchestrator: Connection, seed: Seed) -> None:
    saga_id, _ = await finished(seed, "http_503")
    (moved,) = await orchestrate.apply_results(orchestrator, NO_JITTER)
    assert (moved.status, moved.attempt_count) == (SagaStatus.PENDING_RETRY, 1)
    assert moved.final_error_code == "http_503"
    assert await wait_of(seed, saga_id) == pytest.approx(30, abs=1)
    assert await orchestrate.start_all(orchestrator, POLICY) == []
    assert await orchestrate.seconds_until_next_wake(orchestrator) == pytest.approx(30, abs=2)


async def test_a_retry_that_is_due_gets_the_next_attempt(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(saga_id)
    (moved,) = await orchestrate.start_all(orchestrator, POLICY)
    assert (moved.saga_id, moved.status) == (saga_id, SagaStatus.IN_PROGRESS)
    job = await seed.row("SELECT * FROM webhook_delivery_jobs WHERE id = %s", [moved.job_id])
    assert (job["attempt_number"], job["status"]) == (2, "Pending")


async def test_the_last_failure_dead_letters_in_one_step(orchestrator: Connection, seed: Seed) -> None:
    saga_id, _ = await finished(seed, "http_503", max_retry_limit=1)
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert (moved.status, moved.attempt_count) == (SagaStatus.DEAD_LETTERED, 1)
    dead = await seed.row("SELECT * FROM dead_letters")
    assert (dead["id"], dead["saga_id"]) == (moved.dead_letter_id, saga_id)
    assert dead["final_error_code"] == "http_503"


async def test_five_attempts_are_five_posts_and_no_more(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
    statuses: list[SagaStatus] = []
    for attempt in range(5):
        if attempt:
            await seed.make_due(saga_id)
            await orchestrate.start_all(orchestrator, POLICY)
        await seed.finish(await seed.active_job(saga_id), "http_503")
        (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
        statuses.append(moved.status)
    assert statuses == [SagaStatus.PENDING_RETRY] * 4 + [SagaStatus.DEAD_LETTERED]
    numbers = await seed.value("SELECT array_agg(attempt_number ORDER BY id) FROM webhook_delivery_jobs")
    assert numbers == [1, 2, 3, 4, 5]


async def test_the_last_failure_stays_readable_after_a_success(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(saga_id)
    await seed.finish(await seed.start(saga_id))
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert (moved.status, moved.final_error_code) == (SagaStatus.COMPLETED, "http_503")


async def test_one_result_delivered_twice_moves_the_saga_once(orchestrator: Connection, seed: Seed) -> None:
    saga_id, job_id = await finished(seed, "http_503")
    first = await orchestrate.apply_results(orchestrator, POLICY, job_ids=[job_id, job_id])
    again = await orchestrate.apply_results(orchestrator, POLICY, job_ids=[job_id])
    assert (len(first), again) == (1, [])
    row = await seed.row("SELECT attempt_count FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    assert row["attempt_count"] == 1


async def test_a_repeat_of_an_old_result_does_not_touch_the_attempt_under_way(
    orchestrator: Connection, seed: Seed
) -> None:
    saga_id, job_id = await finished(seed, "http_503")
    await orchestrate.apply_results(orchestrator, POLICY)
    await seed.make_due(saga_id)
    await seed.start(saga_id)
    assert await orchestrate.apply_results(orchestrator, POLICY, job_ids=[job_id]) == []
    assert await seed.status_of(saga_id) is SagaStatus.IN_PROGRESS


async def test_a_decision_over_a_result_that_was_taken_meanwhile_moves_nothing(
    orchestrator: Connection, seed: Seed
) -> None:
    """Between reading a result and locking its saga, another orchestrator may have gone a whole round."""
    saga_id, job_id = await finished(seed, "http_503")
    attempt_at = await seed.value("SELECT attempt_at FROM webhook_delivery_jobs WHERE id = %s", [job_id])
    await orchestrate.apply_results(orchestrator, POLICY)
    await seed.make_due(saga_id)
    await seed.start(saga_id)
    late = {
        "saga_ids": [saga_id],
        "attempts_at": [attempt_at],
        "statuses": ["Completed"],
        "attempt_counts": [2],
        "next_attempts": [datetime.now(UTC)],
        "error_codes": ["http_503"],
        "reasons": [None],
        "subscription_ids": [1],
        "change_flow": [False],
        **flow_columns([]),
    }
    for statement in ("apply_results", "apply_results_and_flow"):
        assert await fetch_dicts(orchestrator, load_queries("orchestrate")[statement], late) == []
    assert await seed.status_of(saga_id) is SagaStatus.IN_PROGRESS


async def test_a_job_that_has_not_ended_has_no_result(orchestrator: Connection, seed: Seed) -> None:
    job_id = await seed.job()
    assert await orchestrate.apply_results(orchestrator, POLICY, job_ids=[job_id, 10**12]) == []
    await seed.claim(job_id)
    assert await orchestrate.apply_results(orchestrator, POLICY, job_ids=[job_id]) == []


async def test_results_that_nobody_applied_are_found_page_by_page(
    orchestrator: Connection, seed: Seed
) -> None:
    subscriptions = [await seed.subscription() for _ in range(2)]
    sagas = [await seed.saga(SagaStatus.IN_PROGRESS, one) for one in [*subscriptions, *subscriptions]]
    jobs = [await seed.active_job(saga_id) for saga_id in sagas]
    for job_id in (jobs[0], jobs[3]):
        await seed.finish(job_id)
    pages: list[list[int]] = []
    after: Sequence[int] | None = (0, 0)
    while after is not None:
        found, after = await orchestrate.unapplied_results(orchestrator, after=after, limit=1)
        pages.append(found)
    assert pages == [[jobs[0]], [], [], [jobs[3]], []]
    await orchestrate.apply_results(orchestrator, POLICY)
    assert await orchestrate.unapplied_results(orchestrator) == ([], None)


async def test_orchestrators_at_once_take_each_result_once(connect: Connect, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    for job_id in await seed.jobs(subscription_id, 200):
        await seed.finish(job_id, "http_503")
    crowd = [await connect(Role.ORCHESTRATOR) for _ in range(4)]

    async def drain(connection: Connection) -> list[SagaMoved]:
        moved: list[SagaMoved] = []
        while True:
            left: list[int] = []  # to an orchestrator that is changing the same flow
            batch = await orchestrate.apply_results(connection, POLICY, limit=20, on_left=left.append)
            moved += batch
            if not batch and not left:
                return moved

    moved = [saga for some in await asyncio.gather(*map(drain, crowd)) for saga in some]
    assert len(moved) == len({saga.saga_id for saga in moved}) == 200
    assert await seed.rows("SELECT DISTINCT attempt_count FROM webhook_delivery_sagas") == [
        {"attempt_count": 1}
    ]


async def test_orchestrators_at_once_make_one_job_for_each_saga(connect: Connect, seed: Seed) -> None:
    sagas = [await seed.saga() for _ in range(40)]
    crowd = [await connect(Role.ORCHESTRATOR) for _ in range(4)]
    by_id = [orchestrate.start_attempts_of(connection, POLICY, sagas) for connection in crowd[:2]]
    oldest = [orchestrate.start_all(connection, POLICY) for connection in crowd[2:]]
    moved = [saga for some in await asyncio.gather(*by_id, *oldest) for saga in some]
    assert sorted(saga.saga_id for saga in moved) == sagas
    assert await seed.value("SELECT count(*) FROM webhook_delivery_jobs") == 40


async def test_a_batch_takes_no_more_than_its_limit_oldest_first(
    orchestrator: Connection, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await seed.subscription()
    sagas = [await seed.saga(SagaStatus.PENDING, subscription) for _ in range(3)]
    monkeypatch.setattr(start_attempts, "BATCH", 2)
    started = await orchestrate.start_attempts(orchestrator, POLICY, subscription_ids=[subscription])
    assert [saga.saga_id for saga in started.moves] == sagas[:2]
    assert started.again == [subscription]


@pytest.mark.parametrize("named", [True, False])
async def test_a_saga_is_not_started_before_its_time(
    orchestrator: Connection, seed: Seed, named: bool
) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    if named:
        moved = await orchestrate.start_attempts_of(orchestrator, POLICY, [saga_id])
    else:
        moved = await orchestrate.start_all(orchestrator, POLICY)
    assert moved == []
    assert await seed.status_of(saga_id) is SagaStatus.PENDING_RETRY


@pytest.mark.parametrize("status", [SagaStatus.IN_PROGRESS, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED])
async def test_a_late_message_starts_no_attempt(
    orchestrator: Connection, seed: Seed, status: SagaStatus
) -> None:
    late, fresh = await seed.saga(status), await seed.saga()
    jobs_before = await seed.value("SELECT count(*) FROM webhook_delivery_jobs")
    moved = await orchestrate.start_attempts_of(orchestrator, POLICY, [late, fresh, 10**12])
    assert [saga.saga_id for saga in moved] == [fresh]
    assert await seed.status_of(late) is status
    assert await seed.value("SELECT count(*) FROM webhook_delivery_jobs") == jobs_before + 1


async def test_a_limit_that_was_lowered_ends_a_waiting_saga_with_its_last_failure(
    orchestrator: Connection, seed: Seed
) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(saga_id)
    await seed.connection.execute("UPDATE subscriptions SET max_retry_limit = 1")
    (moved,) = await orchestrate.start_all(orchestrator, POLICY)
    assert (moved.saga_id, moved.status, moved.job_id) == (saga_id, SagaStatus.DEAD_LETTERED, None)
    assert await seed.value("SELECT final_error_code FROM dead_letters") == "http_503"
    assert await seed.value("SELECT attempt_count FROM webhook_delivery_sagas") == 1


async def test_a_limit_that_was_raised_gives_further_attempts(orchestrator: Connection, seed: Seed) -> None:
    await finished(seed, "http_503", max_retry_limit=1)
    await seed.connection.execute("UPDATE subscriptions SET max_retry_limit = 2")
    (moved,) = await orchestrate.apply_results(orchestrator, LAST_ATTEMPT)
    assert moved.status is SagaStatus.PENDING_RETRY


STOPPED = ["active = false", "verified = false", "deleted_at = now()"]


@pytest.mark.parametrize("stopped", STOPPED)
@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.PENDING_RETRY])
async def test_a_subscription_that_takes_nothing_gets_no_job_and_loses_nothing(
    orchestrator: Connection, seed: Seed, status: SagaStatus, stopped: str
) -> None:
    saga_id = await seed.saga(status)
    await seed.make_due(saga_id)
    await seed.connection.execute(f"UPDATE subscriptions SET {stopped}".encode())
    (moved,) = await orchestrate.start_attempts_of(orchestrator, POLICY, [saga_id])
    code = "subscription_inactive" if status is SagaStatus.PENDING else "http_503"
    assert (moved.status, moved.final_error_code) == (SagaStatus.DEAD_LETTERED, code)
    assert moved.job_id is None
    letter = await seed.row("SELECT final_error_code, reason FROM dead_letters")
    assert letter["final_error_code"] == code
    tried = "it was not sent: " if status is SagaStatus.PENDING else "no further attempt was made: "
    assert letter["reason"].startswith(tried)


@pytest.mark.parametrize(
    ("disabled_reason", "cause"),
    [
        ("gone", "the endpoint answered 410 Gone, and the subscription was disabled"),
        (
            "failing",
            "all attempts had failed since 2026-01-30T12:00:00Z, and the subscription was disabled",
        ),
        (None, "the subscription was deactivated by an operator"),
    ],
)
async def test_what_waited_when_its_subscription_was_switched_off_says_why_it_was_not_sent(
    orchestrator: Connection, seed: Seed, disabled_reason: str | None, cause: str
) -> None:
    saga_id = await seed.saga()
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    await seed.connection.execute(
        "UPDATE subscription_health SET disabled_reason = why,"
        " disabled_at = CASE WHEN why IS NOT NULL THEN timestamptz '2026-01-31 12:00Z' END,"
        " disabled_failing_since = CASE WHEN why IS NOT NULL THEN timestamptz '2026-01-30 12:00Z' END"
        " FROM (SELECT %s::varchar AS why) AS given",
        [disabled_reason],
    )
    (moved,) = await orchestrate.start_attempts_of(orchestrator, POLICY, [saga_id])
    assert moved.final_error_code == "subscription_inactive"
    at = " at 2026-01-31T12:00:00Z" if disabled_reason else ""
    assert await seed.value("SELECT reason FROM dead_letters") == f"it was not sent: {cause}{at}"


async def test_a_last_attempt_that_was_claimed_too_late_to_be_sent_says_why(
    orchestrator: Connection, seed: Seed
) -> None:
    await finished(seed, "subscription_inactive", max_retry_limit=1)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert moved.final_error_code == "subscription_inactive"
    reason = await seed.value("SELECT reason FROM dead_letters")
    assert reason == "it was not sent: the subscription was deactivated by an operator"


@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.PENDING_RETRY])
async def test_a_waiting_saga_can_be_canceled(
    orchestrator: Connection, seed: Seed, status: SagaStatus
) -> None:
    saga_id = await seed.saga(status)
    moved = await orchestrate.cancel_saga(orchestrator, POLICY, saga_id)
    assert (moved.status, moved.final_error_code) == (SagaStatus.DEAD_LETTERED, "canceled")
    dead = await seed.row("SELECT id, final_error_code FROM dead_letters WHERE saga_id = %s", [saga_id])
    assert dead == {"id": moved.dead_letter_id, "final_error_code": "canceled"}


@pytest.mark.parametrize("status", [SagaStatus.IN_PROGRESS, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED])
async def test_a_saga_that_does_not_wait_cannot_be_canceled(
    orchestrator: Connection, seed: Seed, status: SagaStatus
) -> None:
    saga_id = await seed.saga(status)
    with pytest.raises(Conflict) as refused:
        await orchestrate.cancel_saga(orchestrator, POLICY, saga_id)
    assert refused.value.code == "saga_not_waiting"
    assert await seed.status_of(saga_id) is status


async def test_canceling_again_gives_the_same_answer(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga()
    first = await orchestrate.cancel_saga(orchestrator, POLICY, saga_id)
    again = await orchestrate.cancel_saga(orchestrator, POLICY, saga_id)
    assert (again.saga_id, again.status, again.dead_letter_id) == (
        saga_id,
        SagaStatus.DEAD_LETTERED,
        first.dead_letter_id,
    )


async def test_canceling_no_saga_is_not_found(orchestrator: Connection) -> None:
    with pytest.raises(NotFound) as refused:
        await orchestrate.cancel_saga(orchestrator, POLICY, 10**12)
    assert refused.value.code == "saga_not_found"


async def test_one_tenant_cannot_cancel_the_saga_of_another(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING, await seed.subscription(tenant_id="acme"))
    with pytest.raises(NotFound):
        await orchestrate.cancel_saga(orchestrator, POLICY, saga_id, tenant_id="rival")
    assert await seed.status_of(saga_id) is SagaStatus.PENDING
    assert (await orchestrate.cancel_saga(orchestrator, POLICY, saga_id, tenant_id="acme")).dead_letter_id


@pytest.mark.parametrize(
    ("asked", "seconds"), [(None, 30), (0, 30), (10, 30), (120, 120), (86_400, 3600), (2**31 - 1, 3600)]
)
async def test_retry_after_only_lengthens_the_wait_up_to_an_hour(
    orchestrator: Connection, seed: Seed, asked: int | None, seconds: float
) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
    await seed.finish(await seed.active_job(saga_id), "http_429", retry_after_seconds=asked)
    await orchestrate.apply_results(orchestrator, NO_JITTER)
    assert await wait_of(seed, saga_id) == pytest.approx(seconds, abs=1)


async def test_a_subscription_has_its_own_base_delay_and_limit(orchestrator: Connection, seed: Seed) -> None:
    patient, _ = await finished(seed, "http_503", base_delay_seconds=600.0)
    hasty, _ = await finished(seed, "http_503", base_delay_seconds=5.0)
    moved = await orchestrate.apply_results(orchestrator, NO_JITTER)
    assert [saga.max_retry_limit for saga in moved] == [5, 5]
    assert await wait_of(seed, patient) == pytest.approx(600, abs=1)
    assert await wait_of(seed, hasty) == pytest.approx(5, abs=1)


async def test_the_wait_doubles_with_each_failure(orchestrator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
    waits: list[float] = []
    for attempt in range(3):
        if attempt:
            await seed.make_due(saga_id)
            await orchestrate.start_all(orchestrator, POLICY)
        await seed.finish(await seed.active_job(saga_id), "http_503")
        await orchestrate.apply_results(orchestrator, NO_JITTER)
        waits.append(await wait_of(seed, saga_id))
    assert waits == pytest.approx([30, 60, 120], abs=1)


async def test_the_wait_starts_at_the_databases_clock(orchestrator: Connection, seed: Seed) -> None:
    await finished(seed, "http_503")
    before: datetime = await seed.value("SELECT clock_timestamp()")
    (moved,) = await orchestrate.apply_results(orchestrator, NO_JITTER)
    after: datetime = await seed.value("SELECT clock_timestamp()")
    wait = timedelta(seconds=30)
    assert before + wait <= moved.next_attempt_at <= after + wait


PAYLOADS = [
    '{"a":1.10,"big":12345678901234567890,"a":2}',
    '{ "spaces" :\t"kept" ,\n"nul": "\\u0000", "half": "\\ud83d" }',
    "null",
    "[1e400,-0.0]",
    '"\u2028\U0001f600"',
]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("how", ["failure", "canceled", "inactive"])
async def test_a_dead_letter_keeps_the_payload_to_the_byte(
    orchestrator: Connection, seed: Seed, payload: str, how: str
) -> None:
    saga_id = await seed.saga(payload=payload)
    if how == "failure":
        await seed.finish(await seed.start(saga_id), "http_503")
        await orchestrate.apply_results(orchestrator, LAST_ATTEMPT)
    elif how == "canceled":
        await orchestrate.cancel_saga(orchestrator, POLICY, saga_id)
    else:
        await seed.connection.execute("UPDATE subscriptions SET active = false")
        await orchestrate.start_all(orchestrator, POLICY)
    assert await seed.value("SELECT payload_snapshot::text FROM dead_letters") == payload


async def test_a_mixed_batch_moves_each_saga_by_its_own_result(orchestrator: Connection, seed: Seed) -> None:
    expected = {
        (await finished(seed))[0]: SagaStatus.COMPLETED,
        (await finished(seed, "http_503"))[0]: SagaStatus.PENDING_RETRY,
        (await finished(seed, "http_410", max_retry_limit=1))[0]: SagaStatus.DEAD_LETTERED,
    }
    moved = await orchestrate.apply_results(orchestrator, POLICY)
    assert {saga.saga_id: saga.status for saga in moved} == expected
    assert [saga.saga_id for saga in moved if saga.dead_letter_id] == [list(expected)[2]]


async def test_nothing_to_do_is_no_error(orchestrator: Connection) -> None:
    assert await orchestrate.apply_results(orchestrator, POLICY) == []
    assert await orchestrate.apply_results(orchestrator, POLICY, job_ids=[]) == []
    assert await orchestrate.start_attempts_of(orchestrator, POLICY, []) == []
    assert await orchestrate.seconds_until_next_wake(orchestrator) is None


async def test_a_death_that_the_database_does_not_take_holds_up_nobody_and_is_not_lost(
    orchestrator: Connection, seed: Seed
) -> None:
    """In one batch with others. Once the cause is gone it becomes a dead letter after all."""
    sick = [await finished(seed, "http_503", max_retry_limit=1) for _ in range(3)]
    well = [await finished(seed) for _ in range(2)]
    await seed.connection.execute(
        sql.SQL("ALTER TABLE dead_letters ADD CONSTRAINT broken CHECK (saga_id <> {}) NOT VALID").format(
            sick[1][0]
        )
    )
    for _ in range(2):
        with pytest.raises(RowRefused, match="broken") as refused:
            await orchestrate.apply_results(orchestrator, POLICY)
        assert [(row.saga_id, row.job_id) for row in refused.value.rows] == [sick[1]]
    assert await seed.status_of(sick[1][0]) is SagaStatus.IN_PROGRESS
    assert [await seed.status_of(saga_id) for saga_id, _ in well] == [SagaStatus.COMPLETED] * 2
    assert [await seed.status_of(sick[at][0]) for at in (0, 2)] == [SagaStatus.DEAD_LETTERED] * 2
    await seed.connection.execute("ALTER TABLE dead_letters DROP CONSTRAINT broken")
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert (moved.saga_id, moved.status) == (sick[1][0], SagaStatus.DEAD_LETTERED)


@pytest.mark.parametrize("named", [True, False])
async def test_a_saga_that_cannot_be_started_holds_up_nobody(
    orchestrator: Connection, seed: Seed, named: bool
) -> None:
    sagas = [await seed.saga() for _ in range(3)]
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken CHECK (saga_id <> {}) NOT VALID"
        ).format(sagas[1])
    )
    start = (
        orchestrate.start_attempts_of(orchestrator, POLICY, sagas)
        if named
        else orchestrate.start_all(orchestrator, POLICY)
    )
    with pytest.raises(RowRefused, match="broken") as refused:
        await start
    assert [row.saga_id for row in refused.value.rows] == [sagas[1]]
    assert sorted(move.saga_id for move in refused.value.done) == [sagas[0], sagas[2]]
    found = [await seed.status_of(saga_id) for saga_id in sagas]
    assert found == [SagaStatus.IN_PROGRESS, SagaStatus.PENDING, SagaStatus.IN_PROGRESS]


async def test_every_row_that_is_refused_is_told_with_its_ids_and_its_rule_and_without_values(
    orchestrator: Connection, seed: Seed
) -> None:
    """The detail of the database's own message holds the dead letter's payload."""
    subscription = await seed.subscription(max_retry_limit=1)
    sick: list[tuple[int, int]] = []
    for _ in range(3):
        saga_id = await seed.saga(SagaStatus.IN_PROGRESS, subscription)
        sick.append((saga_id, await seed.active_job(saga_id)))
        await seed.finish(sick[-1][1], "http_503")
    well = await finished(seed)
    await seed.connection.execute(
        sql.SQL("ALTER TABLE dead_letters ADD CONSTRAINT broken CHECK (saga_id = {}) NOT VALID").format(
            sick[2][0]
        )
    )
    with pytest.raises(RowRefused) as refused:
        await orchestrate.apply_results(orchestrator, POLICY)
    told = refused.value
    assert [(row.saga_id, row.job_id, row.subscription_id) for row in told.rows] == [
        (*ids, subscription) for ids in sick[:2]
    ]
    assert {row.reason for row in told.rows} == {
        "CheckViolation [23514], table dead_letters, constraint broken"
    }
    assert {move.saga_id for move in told.done} == {sick[2][0], well[0]}
    written = "".join(traceback.format_exception(told))
    assert "broken" in written
    assert "Failing row" not in written


async def test_a_dead_letter_says_who_tried_last(orchestrator: Connection, seed: Seed) -> None:
    _, job_id = await finished(seed, "http_503", max_retry_limit=1)
    worker_id = await seed.value("SELECT worker_id FROM webhook_delivery_jobs WHERE id = %s", [job_id])
    (moved,) = await orchestrate.apply_results(orchestrator, POLICY)
    assert moved.dead_letter_id is not None
    assert moved.worker_id == worker_id is not None


@pytest.mark.parametrize(("policy", "durable"), [(POLICY, "off"), (LAST_ATTEMPT, "on")])
async def test_only_a_commit_with_a_dead_letter_waits_for_the_disk(
    orchestrator: Connection, seed: Seed, policy: RetryPolicy, durable: str
) -> None:
    await finished(seed, "http_500")
    async with transaction(orchestrator):
        (move,) = await orchestrate.apply_results(orchestrator, policy)
        assert (move.dead_letter_id is not None) == (durable == "on")
        assert await fetch_dicts(orchestrator, "SHOW synchronous_commit", {}) == [
            {"synchronous_commit": durable}
        ]
