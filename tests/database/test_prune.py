"""Retention deletes what ended long ago, and what must stay stays: open work, events, dead letters, and what these
need. What is left keeps every promise, and says from when on it is whole."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import Conflict, InvalidInput
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect, requeue
from hooksaga.operations.prune import Place, Pruned, Pruning, prune, prune_batch
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.bulk_rows import backfill_of, old_events, started, step_until_nothing_is_left
from tests.database.seed import LAST_ATTEMPT, POLICY, Seed, as_retention_role, until_blocked

MONTH = Pruning(timedelta(days=30))

SAGAS: LiteralString = "SELECT id FROM webhook_delivery_sagas ORDER BY id"
JOBS: LiteralString = "SELECT saga_id FROM webhook_delivery_jobs ORDER BY id"
HORIZON: LiteralString = "SELECT horizon FROM retention_state"


async def old_saga(seed: Seed, status: SagaStatus = SagaStatus.COMPLETED, days: float = 40) -> int:
    return await seed.make_old(await seed.saga(status), days)


async def prune_all(connection: Connection, wanted: Pruning = MONTH, **how: Any) -> Pruned:
    return await prune(partial(prune_batch, connection, wanted), **how)


async def ids(seed: Seed, query: LiteralString) -> list[int]:
    return [next(iter(row.values())) for row in await seed.rows(query)]


async def test_old_completed_sagas_go_with_their_jobs(operator: Connection, seed: Seed) -> None:
    await old_saga(seed)
    await old_saga(seed)
    young = await old_saga(seed, days=29)
    done = await prune_all(operator)
    assert (done.sagas, done.jobs, done.place) == (2, 2, None)
    assert await ids(seed, SAGAS) == await ids(seed, JOBS) == [young]
    assert await seed.value("SELECT count(*) FROM events") == 3
    assert await seed.findings() == set()


async def test_a_repeat_finds_nothing(operator: Connection, seed: Seed) -> None:
    await old_saga(seed)
    await prune_all(operator)
    again = await prune_all(operator)
    assert (again.sagas, again.jobs) == (0, 0)


@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.IN_PROGRESS, SagaStatus.PENDING_RETRY])
async def test_open_work_stays_however_old(operator: Connection, seed: Seed, status: SagaStatus) -> None:
    saga_id = await old_saga(seed, status, days=400)
    before = await ids(seed, JOBS)
    done = await prune_all(operator)
    assert (done.sagas, done.jobs) == (0, 0)
    assert (await ids(seed, SAGAS), await ids(seed, JOBS)) == ([saga_id], before)
    assert await seed.value(HORIZON) is None


async def test_of_a_dead_saga_only_the_attempts_go(operator: Connection, seed: Seed) -> None:
    saga_id = await old_saga(seed, SagaStatus.DEAD_LETTERED)
    done = await prune_all(operator)
    assert (done.sagas, done.jobs) == (0, 1)
    assert await ids(seed, SAGAS) == [saga_id]
    assert await seed.value("SELECT count(*) FROM dead_letters") == 1
    assert await seed.findings() == set()


async def test_the_age_is_that_of_the_end_not_of_the_attempts(operator: Connection, seed: Seed) -> None:
    """A saga that waited for long and was canceled now ended now."""
    saga_id = await old_saga(seed, SagaStatus.PENDING_RETRY)
    await orchestrate.cancel_saga(seed.connection, POLICY, saga_id)
    assert (await prune_all(operator)).jobs == 0
    await seed.make_old(saga_id)
    assert (await prune_all(operator)).jobs == 1


async def test_every_attempt_of_a_saga_goes_in_one_batch(operator: Connection, seed: Seed) -> None:
    """Whatever the batch's size: a saga that stays has all of its attempts or none."""
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    for _ in range(2):
        await seed.make_due(saga_id)
        await seed.finish(await seed.start(saga_id), "http_503")
        await orchestrate.apply_results(seed.connection, POLICY)
    await seed.make_due(saga_id)
    await seed.finish(await seed.start(saga_id), "http_503")
    await orchestrate.apply_results(seed.connection, LAST_ATTEMPT)
    await seed.make_old(saga_id)
    one_by_one = Pruning(timedelta(days=30), batch=1)
    seen = [await prune_batch(operator, one_by_one)]
    while (place := seen[-1].place) is not None:
        seen.append(await prune_batch(operator, one_by_one, place))
        assert await seed.value("SELECT count(*) FROM webhook_delivery_jobs") in (0, 4)
    assert [one.jobs for one in seen] == [0, 0, 0, 4, 0]
    assert await seed.findings() == set()


async def test_a_requeued_saga_stays_so_that_a_second_requeue_finds_it(
    operator: Connection, seed: Seed
) -> None:
    dead_letter = await seed.dead_letter()
    first = await requeue.requeue_one(operator, dead_letter)
    assert first.saga_id is not None
    await seed.finish(await seed.start(first.saga_id))
    await orchestrate.apply_results(seed.connection, POLICY)
    for saga_id in await ids(seed, SAGAS):
        await seed.make_old(saga_id)
    done = await prune_all(operator)
    assert (done.sagas, done.jobs) == (0, 2)
    again = await requeue.requeue_one(operator, dead_letter)
    assert (again.saga_id, again.created) == (first.saga_id, False)
    assert await seed.findings() == set()


async def test_an_event_whose_saga_was_pruned_is_never_routed_again(operator: Connection, seed: Seed) -> None:
    await old_saga(seed)
    await prune_all(operator)
    await route_events(seed.connection)
    assert await ids(seed, SAGAS) == []


async def test_a_dry_run_counts_the_same_and_deletes_nothing(operator: Connection, seed: Seed) -> None:
    for status in (SagaStatus.COMPLETED, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED):
        await old_saga(seed, status)
    for batch in (1, 2, 5000):
        counted = await prune_all(operator, Pruning(timedelta(days=30), dry_run=True, batch=batch))
        assert (counted.sagas, counted.jobs) == (2, 3)
    assert await seed.value(HORIZON) is None
    done = await prune_all(operator)
    assert (done.sagas, done.jobs) == (2, 3)


async def test_it_stops_when_told_and_goes_on_where_it_was(operator: Connection, seed: Seed) -> None:
    for _ in range(5):
        await old_saga(seed)
    wanted = Pruning(timedelta(days=30), batch=2)
    first = await prune_all(operator, wanted, may_go_on=lambda so_far: so_far.sagas < 4)
    assert (first.sagas, isinstance(first.place, Place)) == (4, True)
    rest = await prune_all(operator, wanted, after=first.place)
    assert (rest.sagas, rest.place) == (1, None)


async def test_a_transaction_that_dies_leaves_all(connect: Connect, seed: Seed) -> None:
    await old_saga(seed)
    dying = await connect(Role.ADMIN)
    async with dying.transaction(force_rollback=True):
        assert (await prune_batch(dying, MONTH)).sagas == 1
    assert len(await ids(seed, SAGAS)) == len(await ids(seed, JOBS)) == 1
    assert await seed.value(HORIZON) is None


async def test_less_than_a_day_is_refused_here_and_by_the_database(operator: Connection) -> None:
    with pytest.raises(InvalidInput, match="at least 1d"):
        Pruning(timedelta(hours=23))
    for older_than, rows in (("23 hours", 1), ("-1 day", 1), ("30 days", 0), ("30 days", 100_001)):
        with pytest.raises(psycopg.Error) as refused:
            await operator.execute("SELECT * FROM prune_finished(%s, %s, NULL, 0, false)", [older_than, rows])
        assert refused.value.sqlstate == "HS001"


async def test_a_saga_that_another_holds_is_passed_by(
    operator: Connection, owner: Connection, seed: Seed
) -> None:
    held, other = await old_saga(seed), await old_saga(seed)
    async with owner.transaction():
        await owner.execute("SELECT id FROM webhook_delivery_sagas WHERE id = %s FOR KEY SHARE", [held])
        done = await prune_all(operator)
        assert (done.sagas, done.place) == (1, None)
    assert other not in await ids(seed, SAGAS)
    assert (await prune_all(operator)).sagas == 1


async def test_two_at_once_delete_each_row_once(connect: Connect, seed: Seed) -> None:
    for _ in range(20):
        await old_saga(seed)
    wanted = Pruning(timedelta(days=30), batch=3)
    both = await asyncio.gather(*[prune_all(await connect(Role.ADMIN), wanted) for _ in range(2)])
    assert sum(one.sagas for one in both) == 20
    assert await ids(seed, SAGAS) == []


# The horizon.


async def test_the_horizon_is_where_the_oldest_whole_day_begins(operator: Connection, seed: Seed) -> None:
    assert await seed.value("SELECT retention_horizon()") is None
    await old_saga(seed)
    done = await prune_all(operator)
    horizon = await seed.value("SELECT retention_horizon()")
    assert timedelta(0) <= done.before - horizon < timedelta(minutes=1)
    await old_saga(seed, days=90)
    await prune_all(operator, Pruning(timedelta(days=60)))
    assert await seed.value("SELECT retention_horizon()") == horizon


async def test_who_asks_for_the_horizon_holds_it_until_he_ends(
    connect: Connect, operator: Connection, seed: Seed
) -> None:
    """Or a backfill could start a saga whose predecessor is deleted at that moment. A batch does not wait for it."""
    await old_saga(seed)
    asking = await connect(Role.ADMIN)
    async with asking.transaction():
        answer = await (await asking.execute("SELECT retention_horizon()")).fetchone()
        assert answer == (None,)
        assert (await prune_batch(operator, MONTH)).is_blocked
        assert len(await ids(seed, SAGAS)) == 1
    assert (await prune_all(operator)).sagas == 1


async def test_who_asks_during_a_prune_waits_and_gets_the_new_horizon(
    connect: Connect, owner: Connection, operator: Connection, seed: Seed
) -> None:
    await old_saga(seed)
    asking = await connect(Role.ADMIN)
    async with operator.transaction():
        assert (await prune_batch(operator, MONTH)).sagas == 1
        answer = asyncio.create_task(asking.execute("SELECT retention_horizon()"))
        await until_blocked(owner, asking)
    row = await (await answer).fetchone()
    assert row is not None
    assert row[0] == await seed.value(HORIZON)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE retention_state SET horizon = NULL",
        "UPDATE retention_state SET horizon = horizon - interval '1 second'",
        "UPDATE retention_state SET horizon = now() - interval '23 hours'",
        "DELETE FROM retention_state",
        "TRUNCATE retention_state",
    ],
)
async def test_the_horizon_never_goes_back_nor_too_far(
    operator: Connection, seed: Seed, change: LiteralString
) -> None:
    await old_saga(seed)
    await prune_all(operator)
    with pytest.raises(psycopg.Error) as refused:
        await seed.connection.execute(change)
    assert refused.value.sqlstate == "HS001"


async def test_there_is_one_horizon(seed: Seed) -> None:
    for value in ("true", "false"):
        with pytest.raises(errors.IntegrityError):
            await seed.connection.execute(f"INSERT INTO retention_state VALUES ({value})".encode())


async def test_an_event_from_the_future_keeps_its_saga(operator: Connection, seed: Seed) -> None:
    """The horizon speaks of events, so nothing of an event beyond it may go."""
    saga_id = await old_saga(seed)
    await seed.rewrite("UPDATE events SET created_at = now() + interval '1 year'")
    done = await prune_all(operator)
    assert (done.sagas, done.jobs) == (0, 0)
    assert await ids(seed, SAGAS) == [saga_id]


async def test_a_backfill_never_repeats_what_was_delivered_and_pruned(
    operator: Connection, seed: Seed
) -> None:
    """Neither one that began before the prune, nor one that would begin after."""
    subscription_id = await seed.subscription()
    await seed.make_old(await seed.saga(SagaStatus.COMPLETED, subscription_id))
    since = datetime.now(UTC) - timedelta(days=60)
    await old_events(seed, subscription_id, 3, datetime.now(UTC) - timedelta(days=10))
    await started(operator, backfill_of(subscription_id, since=since))
    assert (await prune_all(operator)).sagas == 1
    assert await step_until_nothing_is_left(operator) == 3
    with pytest.raises(Conflict) as refused:
        await started(operator, backfill_of(subscription_id, since=since))
    assert refused.value.code == "before_retention_horizon"
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 3


# What is left is as strictly kept as before.


async def prune_one(operator: Connection, seed: Seed) -> None:
    await old_saga(seed)
    await prune_all(operator)


async def test_a_missing_saga_of_a_newer_event_is_still_found(operator: Connection, seed: Seed) -> None:
    await prune_one(operator, seed)
    await seed.event_for(await seed.subscription())
    await seed.rewrite("DELETE FROM routing_outbox")
    assert await seed.findings() == {"event_neither_waiting_nor_routed"}


async def test_an_old_event_without_its_saga_is_still_found(operator: Connection, seed: Seed) -> None:
    """The router wrote down that it started no saga, so none can have been pruned."""
    await prune_one(operator, seed)
    saga_id = await old_saga(seed)
    await seed.rewrite("DELETE FROM webhook_delivery_jobs WHERE saga_id = %s", [saga_id])
    await seed.rewrite("DELETE FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    assert await seed.findings() == set()
    await seed.rewrite(
        "INSERT INTO routing_decisions_of_later_parts"
        " (event_id, after_subscription, newest_change, snapshot, sagas_started)"
        " SELECT event_id, 1000000, newest_change, snapshot, 0 FROM routing_decisions"
    )
    assert await seed.findings() == set()  # none in its last part, but in the first
    await seed.rewrite("UPDATE routing_decisions SET sagas_started = 0")
    assert await seed.findings() == {"matching_subscription_without_saga"}


@pytest.mark.parametrize("days", [0, 40])
async def test_jobs_of_a_completed_saga_never_go_alone(operator: Connection, seed: Seed, days: int) -> None:
    await prune_one(operator, seed)
    await old_saga(seed, days=days)
    await seed.rewrite("DELETE FROM webhook_delivery_jobs")
    assert await seed.findings() == {
        "attempt_count_is_not_the_applied_jobs",
        "completed_saga_without_one_last_completed_job",
    }


async def test_missing_attempts_of_a_younger_dead_saga_are_found(operator: Connection, seed: Seed) -> None:
    await prune_one(operator, seed)
    await old_saga(seed, SagaStatus.DEAD_LETTERED, days=20)
    await seed.rewrite("DELETE FROM webhook_delivery_jobs")
    assert await seed.findings() == {"attempt_count_is_not_the_applied_jobs"}


async def test_some_missing_attempts_of_an_old_dead_saga_are_found(operator: Connection, seed: Seed) -> None:
    await prune_one(operator, seed)
    await old_saga(seed, SagaStatus.DEAD_LETTERED)
    await seed.rewrite("UPDATE webhook_delivery_sagas SET attempt_count = 2")
    assert await seed.findings() == {"attempt_count_is_not_the_applied_jobs"}


async def test_a_broken_saga_is_left_for_the_audit(operator: Connection, seed: Seed) -> None:
    """A saga that ended during an attempt is not deleted, and blocks no other."""
    broken_one, good = await old_saga(seed), await old_saga(seed)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET status = 'Leased' WHERE saga_id = %s", [broken_one])
    assert (await prune_all(operator)).sagas == 1
    assert await ids(seed, SAGAS) == [broken_one]
    assert good not in await ids(seed, JOBS)


# What an event says of itself.


async def test_an_event_says_that_its_deliveries_may_be_gone(operator: Connection, seed: Seed) -> None:
    await old_saga(seed)
    new = await seed.saga(SagaStatus.COMPLETED)
    done = await prune_all(operator)
    by_age = [
        await inspect.show_event(operator, row["webhook_id"], tenant_id=None)
        for row in await seed.rows("SELECT webhook_id FROM events ORDER BY id")
    ]
    old_view, new_view = by_age
    assert (old_view.sagas, old_view.pruned_before) == ([], await seed.value(HORIZON))
    assert old_view.pruned_before is not None
    assert done.before is not None
    assert old_view.pruned_before <= done.before
    assert ([saga.id for saga in new_view.sagas], new_view.pruned_before) == ([new], None)


# Who may.


@pytest.mark.parametrize("status", SagaStatus)
async def test_even_the_retention_role_deletes_no_open_or_young_saga(seed: Seed, status: SagaStatus) -> None:
    saga_id = await seed.saga(status)
    await seed.rewrite("DELETE FROM webhook_delivery_jobs")
    if status not in (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED):
        await seed.make_old(saga_id)
    with pytest.raises(psycopg.Error) as refused:
        await as_retention_role(seed, "DELETE FROM webhook_delivery_sagas")
    assert refused.value.sqlstate == "HS001"


async def test_even_the_retention_role_deletes_no_job_whose_result_waits(seed: Seed) -> None:
    for job_id in (await seed.job(), await seed.job()):
        with pytest.raises(psycopg.Error) as refused:
            await as_retention_role(seed, "DELETE FROM webhook_delivery_jobs")
        assert refused.value.sqlstate == "HS001"
        await seed.finish(job_id)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE webhook_delivery_sagas SET attempt_count = 0",
        "UPDATE webhook_delivery_jobs SET dispatched_at = now()",
        "SELECT payload FROM events",
        "UPDATE events SET event_type = 'b'",
        "UPDATE dead_letters SET reason = 'none'",
        "DELETE FROM routing_outbox",
        "DELETE FROM retention_days",
        "INSERT INTO retention_state DEFAULT VALUES",
        "SELECT * FROM subscription_secrets",
    ],
)
async def test_the_retention_role_may_do_nothing_else(seed: Seed, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        await as_retention_role(seed, statement)


@pytest.mark.parametrize(("value", "state"), [("99", "428C9"), ("DEFAULT", "HS001")])
async def test_the_right_to_lock_rows_changes_no_id(seed: Seed, value: str, state: str) -> None:
    await seed.saga()
    with pytest.raises(psycopg.Error) as refused:
        await as_retention_role(seed, f"UPDATE webhook_delivery_sagas SET id = {value}")
    assert refused.value.sqlstate == state
