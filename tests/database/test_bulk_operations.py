"""Bulk operations: each thing once, no faster than the rate, one endpoint never in the way of another."""

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.bulk import BULK_MOVES, BulkStatus
from hooksaga.core.errors import Conflict, InvalidInput, NotFound
from hooksaga.core.requeue_models import NewBulkOperation
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import bulk_operations, requeue
from hooksaga.operations.bulk_operations import (
    count_bulk_operation,
    move_bulk_operation,
    pace_bulk_operation,
    show_bulk_operation,
    start_bulk_operation,
)
from hooksaga.operations.bulk_steps import step_bulk_operation
from hooksaga.operations.requester import Requester
from hooksaga.operations.requeue import DeadLetterFilter
from tests.conftest import Connect, SessionOf
from tests.database import orchestrate
from tests.database.bulk_rows import (
    ANYBODY,
    backfill_of,
    dead_letters,
    let_time_pass,
    most_in_a_second,
    old_events,
    requeue_of,
    started,
    step_until_nothing_is_left,
)
from tests.database.seed import LAST_ATTEMPT, POLICY, Seed

pytestmark = pytest.mark.usefixtures("audited")


async def state(operator: Connection, operation_id: int) -> tuple[str, int, int, int]:
    now = await show_bulk_operation(operator, operation_id, tenant_id=None)
    return now.status, now.matched, now.done, now.skipped


async def requeued(seed: Seed) -> list[dict[str, Any]]:
    return await seed.rows(
        "SELECT * FROM webhook_delivery_sagas WHERE bulk_operation_id IS NOT NULL ORDER BY next_attempt_at, id"
    )


# What an operation does


async def test_every_dead_letter_gets_one_saga_of_its_pair(operator: Connection, seed: Seed) -> None:
    for _ in range(3):
        await dead_letters(seed, await seed.subscription(), 7)
    operation = await started(operator, requeue_of())
    assert (operation.matched, operation.done, operation.status) == (21, 0, "Running")
    assert await step_until_nothing_is_left(operator) == 21
    assert await state(operator, operation.id) == ("Completed", 21, 21, 0)
    sagas = await requeued(seed)
    assert len({saga["requeued_from"] for saga in sagas}) == 21
    assert {saga["bulk_operation_id"] for saga in sagas} == {operation.id}


async def test_the_dry_run_counts_what_is_then_done(operator: Connection, seed: Seed) -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    acme, other = await seed.subscription("a", tenant_id="acme"), await seed.subscription("b")
    await dead_letters(seed, acme, 5, first=noon)
    await dead_letters(seed, other, 4, "tls_error", first=noon)
    await dead_letters(seed, other, 3, first=noon + timedelta(hours=1))
    for wanted, count in (
        (requeue_of(error_code="tls_error"), 4),
        (requeue_of(event_type="a"), 5),
        (requeue_of(subscription_id=other, failed_after=noon + timedelta(minutes=1)), 3),
        (requeue_of(failed_before=noon), 0),
    ):
        found = await count_bulk_operation(operator, wanted, ANYBODY)
        assert found.matched == count
        operation = await started(operator, wanted)
        assert operation.matched == count
        assert await step_until_nothing_is_left(operator) == count
    assert await step_until_nothing_is_left(operator) == 0


@pytest.mark.parametrize("code", ["canceled", "discarded"])
async def test_what_was_canceled_or_discarded_is_taken_along_only_where_the_filter_names_it(
    operator: Connection, seed: Seed, code: str
) -> None:
    subscription = await seed.subscription()
    await dead_letters(seed, subscription, 2)
    await dead_letters(seed, subscription, 3, code)
    for wanted, count in (
        (requeue_of(), 2),
        (requeue_of(subscription_id=subscription, error_code=code), 3),
    ):
        assert (await count_bulk_operation(operator, wanted, ANYBODY)).matched == count
        operation = await started(operator, wanted)
        assert await step_until_nothing_is_left(operator) == count
        assert await state(operator, operation.id) == ("Completed", count, count, 0)


async def test_a_tenants_operation_takes_that_tenants_dead_letters_only(
    operator: Connection, seed: Seed
) -> None:
    await dead_letters(seed, await seed.subscription(tenant_id="acme"), 3)
    await dead_letters(seed, await seed.subscription(), 4)
    operation, _ = await start_bulk_operation(operator, requeue_of(), Requester("acme", "acme's"))
    assert operation.matched == 3
    assert await step_until_nothing_is_left(operator) == 3


async def test_what_dies_again_is_not_requeued_by_the_same_operation(
    operator: Connection, seed: Seed
) -> None:
    await dead_letters(seed, await seed.subscription(max_retry_limit=1), 6)
    operation = await started(operator, requeue_of(rate=1))
    step = await step_bulk_operation(operator, horizon_seconds=2.5)
    assert len(step.saga_ids) == 3
    await let_time_pass(seed, 5)
    for saga_id in step.saga_ids:
        await seed.finish(await seed.start(saga_id), "http_503")
    assert len(await orchestrate.apply_results(seed.connection, LAST_ATTEMPT)) == 3
    assert await step_until_nothing_is_left(operator) == 3
    assert await state(operator, operation.id) == ("Completed", 6, 6, 0)
    assert (await count_bulk_operation(operator, requeue_of(), ANYBODY)).matched == 3


async def test_an_operation_over_nothing_ends_with_its_first_step(operator: Connection) -> None:
    operation = await started(operator, requeue_of(error_code="none such"))
    step = await step_bulk_operation(operator, horizon_seconds=1)
    assert (step.operation_id, step.status, step.saga_ids) == (operation.id, "Completed", [])


# Who wants it, and what a repeated call does


async def test_the_record_says_who_and_why(operator: Connection, seed: Seed) -> None:
    key_id = await seed.value(
        "SELECT create_api_key('ops', decode(repeat('ab', 32), 'hex'), 'abab', NULL, '{admin}')"
    )
    wanted = NewBulkOperation(kind="requeue", reason="the receiver is back")
    operation, _ = await start_bulk_operation(operator, wanted, Requester(None, "a key", key_id))
    assert (operation.created_by, operation.created_by_key_id, operation.reason) == (
        "ops",
        key_id,
        "the receiver is back",
    )
    assert (operation.tenant_id, operation.filter, operation.rate_per_second) == (None, {}, 20)


async def test_ten_equal_calls_at_once_start_one_operation(session_of: SessionOf, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 50)
    sessions = [session_of(Role.ADMIN) for _ in range(10)]
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    answers = await asyncio.gather(
        *(
            session.run(
                lambda connection: start_bulk_operation(connection, requeue_of(failed_after=moment), ANYBODY)
            )
            for session in sessions
        )
    )
    assert len({operation.id for operation, _ in answers}) == 1
    assert [created for _, created in answers].count(True) == 1
    assert {operation.matched for operation, _ in answers} == {50}


async def test_an_equal_call_finds_the_paused_one_and_starts_anew_once_it_ended(
    operator: Connection, seed: Seed
) -> None:
    operation = await started(operator, requeue_of(event_type="a"))
    await move_bulk_operation(operator, operation.id, BulkStatus.PAUSED, tenant_id=None)
    again, created = await start_bulk_operation(operator, requeue_of(event_type="a"), ANYBODY)
    assert (again.id, again.status, created) == (operation.id, "Paused", False)
    assert (await started(operator, requeue_of(event_type="b"))).id != operation.id
    await move_bulk_operation(operator, operation.id, BulkStatus.STOPPED, tenant_id=None)
    assert (await started(operator, requeue_of(event_type="a"))).id != operation.id


# The rate


@pytest.mark.parametrize("rate", [0.5, 3, 20, 250])
async def test_sagas_are_spread_evenly_at_the_rate(operator: Connection, seed: Seed, rate: float) -> None:
    await dead_letters(seed, await seed.subscription(), 600)
    await started(operator, requeue_of(rate))
    for _ in range(4):
        await step_until_nothing_is_left(operator, horizon_seconds=4)
        await let_time_pass(seed, 1)
    times = [saga["next_attempt_at"] for saga in await requeued(seed)]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert len(times) >= min(600, int(rate * 4))
    assert min(gaps, default=1 / rate) == pytest.approx(1 / rate, rel=1e-3)
    assert max(gaps, default=1 / rate) <= 1 / rate + 0.2
    assert await most_in_a_second(seed) <= max(1, rate)


async def test_the_first_is_due_at_once_and_none_beyond_the_horizon(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 100)
    await started(operator, requeue_of(10))
    step = await step_bulk_operation(operator, horizon_seconds=3)
    assert step.delays == pytest.approx([n / 10 for n in range(30)], abs=1e-5)
    assert (await step_bulk_operation(operator, horizon_seconds=3)).operation_id in (None, step.operation_id)
    assert await most_in_a_second(seed) == 10


async def test_steppers_at_once_never_exceed_the_rate(session_of: SessionOf, seed: Seed) -> None:
    for _ in range(4):
        await dead_letters(seed, await seed.subscription(), 200)
    sessions = [session_of(Role.ADMIN) for _ in range(8)]
    operation = await sessions[0].run(lambda connection: started(connection, requeue_of(100)))
    for _ in range(6):
        await asyncio.gather(
            *(
                session.run(lambda connection: step_until_nothing_is_left(connection, horizon_seconds=2))
                for session in sessions
            )
        )
    sagas = await requeued(seed)
    assert len({saga["requeued_from"] for saga in sagas}) == len(sagas) >= 200
    assert await most_in_a_second(seed) <= 100
    assert (await show_bulk_operation(seed.connection, operation.id, tenant_id=None)).done == len(sagas)


async def test_time_that_was_lost_is_not_made_up_for(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 500)
    await started(operator, requeue_of(10))
    await step_bulk_operation(operator, horizon_seconds=0.95)
    await let_time_pass(seed, 170)
    assert len((await step_bulk_operation(operator, horizon_seconds=0.95)).saga_ids) == 10
    assert await most_in_a_second(seed) == 10


async def test_a_new_rate_holds_from_the_next_saga_on(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 100)
    operation = await started(operator, requeue_of(0.1))
    await step_until_nothing_is_left(operator, horizon_seconds=15)
    await pace_bulk_operation(operator, operation.id, 10, tenant_id=None)
    await step_until_nothing_is_left(operator, horizon_seconds=12)
    times = [saga["next_attempt_at"] for saga in await requeued(seed)]
    first, *others = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert first == 10
    assert others == pytest.approx([0.1] * len(others))
    assert (times[-1] - times[0]).total_seconds() > 11.8  # as far as the horizon, and not only one saga


async def test_a_saga_that_is_not_due_yet_gets_no_job(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 3)
    await started(operator, requeue_of(0.1))
    await step_until_nothing_is_left(operator, horizon_seconds=25)
    moved = await orchestrate.start_all(seed.connection, POLICY)
    assert [move.saga_id for move in moved] == [(await requeued(seed))[0]["id"]]
    assert await orchestrate.seconds_until_next_wake(seed.connection) == pytest.approx(10, abs=2)


# Crashes


async def test_a_step_that_is_cut_off_leaves_nothing_and_is_repeated(
    connect: Connect, operator: Connection, seed: Seed
) -> None:
    await dead_letters(seed, await seed.subscription(), 30)
    operation = await started(operator, requeue_of())
    dying = await connect(Role.ADMIN)
    async with dying.transaction(force_rollback=True):
        assert len((await step_bulk_operation(dying, horizon_seconds=0.01)).saga_ids) == 10
        assert (await step_bulk_operation(operator, horizon_seconds=1)).operation_id is None  # passed by
    assert await requeued(seed) == []
    assert await step_until_nothing_is_left(operator) == 30
    assert await state(operator, operation.id) == ("Completed", 30, 30, 0)


async def test_a_connection_killed_in_a_step_leaves_the_operation_to_others(
    connect: Connect, operator: Connection, seed: Seed
) -> None:
    await dead_letters(seed, await seed.subscription(), 5)
    await started(operator, requeue_of())
    dying = await connect(Role.ADMIN)
    await dying.execute("BEGIN")
    await step_bulk_operation(dying, horizon_seconds=1)
    await seed.value("SELECT pg_terminate_backend(%s, 5000)", [dying.info.backend_pid])
    assert await step_until_nothing_is_left(operator) == 5
    with pytest.raises(psycopg.OperationalError):
        await dying.execute("COMMIT")


# Beside others


async def test_what_somebody_else_requeued_meanwhile_is_skipped(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 10)
    operation = await started(operator, requeue_of())
    done = await requeue.requeue_matching(operator, DeadLetterFilter(), limit=4)
    assert len(done.requeued) == 4
    assert await step_until_nothing_is_left(operator) == 6
    assert await state(operator, operation.id) == ("Completed", 10, 6, 4)


async def test_operations_and_single_requeues_at_once_requeue_each_once(
    session_of: SessionOf, seed: Seed
) -> None:
    subscriptions = [await seed.subscription("a") for _ in range(3)]
    for one in subscriptions:
        await dead_letters(seed, one, 60)
    sessions = [session_of(Role.ADMIN) for _ in range(6)]
    for wanted in (requeue_of(), requeue_of(event_type="a"), requeue_of(subscription_id=subscriptions[0])):
        await sessions[0].run(lambda connection, wanted=wanted: started(connection, wanted))
    await asyncio.gather(
        *(session.run(step_until_nothing_is_left) for session in sessions[:4]),
        *(
            session.run(lambda connection: requeue.requeue_matching(connection, DeadLetterFilter(), limit=50))
            for session in sessions[4:]
        ),
    )
    count = (
        "SELECT count(requeued_from), count(DISTINCT requeued_from) AS letters FROM webhook_delivery_sagas"
    )
    assert await seed.row(count) == {"count": 180, "letters": 180}
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await seed.value(deadlocks) == 0


# Lanes


@pytest.mark.parametrize("stopped", ["active = false", "verified = false", "deleted_at = now()"])
async def test_an_inactive_subscription_is_skipped_and_holds_up_nobody(
    operator: Connection, seed: Seed, stopped: str
) -> None:
    gone, good = await seed.subscription(), await seed.subscription()
    await dead_letters(seed, gone, 50)
    await dead_letters(seed, good, 5)
    await seed.connection.execute(f"UPDATE subscriptions SET {stopped} WHERE id = %s".encode(), [gone])
    operation = await started(operator, requeue_of())
    assert await step_until_nothing_is_left(operator) == 5
    assert await state(operator, operation.id) == ("Completed", 55, 5, 50)
    lanes = {
        lane.subscription_id: lane
        for lane in (await show_bulk_operation(operator, operation.id, tenant_id=None)).lanes
    }
    assert (lanes[gone].skipped, lanes[good].done) == (50, 5)


async def test_slots_are_shared_by_turns(operator: Connection, seed: Seed) -> None:
    crowd = await seed.subscription()
    await dead_letters(seed, crowd, 300)
    small = [await seed.subscription() for _ in range(4)]
    for one in small:
        await dead_letters(seed, one, 5)
    await started(operator, requeue_of(5))
    await step_bulk_operation(operator, horizon_seconds=4.9)
    sagas = await requeued(seed)
    assert len(sagas) == 25
    for first in range(0, 25, 5):
        assert {saga["subscription_id"] for saga in sagas[first : first + 5]} == {crowd, *small}
    await step_until_nothing_is_left(operator, horizon_seconds=8)
    assert {saga["subscription_id"] for saga in (await requeued(seed))[25:]} == {crowd}


async def test_more_lanes_than_slots_all_have_their_turn(operator: Connection, seed: Seed) -> None:
    for _ in range(12):
        await dead_letters(seed, await seed.subscription(), 2)
    await started(operator, requeue_of(5))
    for _ in range(12):
        await step_until_nothing_is_left(operator, horizon_seconds=0.9)
        await let_time_pass(seed, 1)
    order = [saga["subscription_id"] for saga in await requeued(seed)]
    assert len(order) == 24
    assert len(set(order[:12])) == len(set(order[12:])) == 12


async def test_a_subscription_with_much_under_way_waits_and_others_go_on(
    operator: Connection, seed: Seed
) -> None:
    flooded, good = await seed.subscription(), await seed.subscription()
    await dead_letters(seed, flooded, 20)
    await dead_letters(seed, good, 20)
    operation = await started(operator, requeue_of(subscription_id=flooded, rate=1000))
    step = await step_bulk_operation(operator, horizon_seconds=0.004)
    await let_time_pass(seed, 1)
    for saga_id in step.saga_ids:
        await seed.start(saga_id)
    assert len(step.saga_ids) == 4
    other = await started(operator, requeue_of())
    assert await step_until_nothing_is_left(operator, max_open=4) == 20
    assert {saga["subscription_id"] for saga in (await requeued(seed))[4:]} == {good}
    assert (await state(operator, operation.id))[2] == 4
    for saga_id in step.saga_ids[:2]:  # one succeeds, one waits for its retry
        await seed.finish(await seed.active_job(saga_id), None if saga_id == step.saga_ids[0] else "http_503")
    await orchestrate.apply_results(seed.connection, POLICY)
    await let_time_pass(seed, 10)
    assert await step_until_nothing_is_left(operator, max_open=4) > 0
    await end_pending(seed)
    await step_until_nothing_is_left(operator)
    assert len(await requeued(seed)) == 40
    assert (await state(operator, operation.id))[0] == (await state(operator, other.id))[0] == "Completed"


async def end_pending(seed: Seed) -> None:
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET status = 'Completed'"
        " WHERE status = 'Pending' AND bulk_operation_id IS NOT NULL"
    )


async def test_what_is_due_and_has_no_room_counts_as_under_way(operator: Connection, seed: Seed) -> None:
    """An operation does not flood a subscription that is paused, or whose endpoint is down."""
    paused = await seed.subscription()
    await dead_letters(seed, paused, 10)
    operation = await started(operator, requeue_of(1000))
    step = await step_bulk_operation(operator, horizon_seconds=0.003)
    await let_time_pass(seed, 1)
    assert {saga["status"] for saga in await requeued(seed)} == {"Pending"}
    assert await step_until_nothing_is_left(operator, max_open=len(step.saga_ids)) == 0
    await end_pending(seed)
    assert await step_until_nothing_is_left(operator) == 7
    assert (await state(operator, operation.id))[:3] == ("Completed", 10, 10)


async def test_a_wait_for_a_retry_counts_as_under_way(operator: Connection, seed: Seed) -> None:
    failing = await seed.subscription()
    await dead_letters(seed, failing, 10)
    await started(operator, requeue_of(1000))
    step = await step_bulk_operation(operator, horizon_seconds=0.003)
    await let_time_pass(seed, 1)
    for saga_id in step.saga_ids:
        await seed.finish(await seed.start(saga_id), "http_503")
    await orchestrate.apply_results(seed.connection, POLICY)
    assert {saga["status"] for saga in await requeued(seed)} == {"PendingRetry"}
    assert await step_until_nothing_is_left(operator, max_open=3) == 0
    assert await step_until_nothing_is_left(operator, max_open=4) == 7


async def test_an_operation_that_can_start_nothing_does_not_hold_up_another(
    operator: Connection, seed: Seed
) -> None:
    first, second = await seed.subscription(), await seed.subscription()
    for one in (first, second):
        await dead_letters(seed, one, 5)
        await started(operator, requeue_of(subscription_id=one))
    assert await step_until_nothing_is_left(operator, max_open=0) == 0
    await seed.saga(SagaStatus.IN_PROGRESS, first)  # not of a bulk operation: does not count
    assert await step_until_nothing_is_left(operator, max_open=1) == 10


# Pause, resume, stop


async def test_a_pause_starts_nothing_and_a_resume_goes_on(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 50)
    operation = await started(operator, requeue_of(10))
    await step_bulk_operation(operator, horizon_seconds=0.95)
    paused = await move_bulk_operation(operator, operation.id, BulkStatus.PAUSED, tenant_id=None)
    assert (paused.status, paused.done) == ("Paused", 10)
    await let_time_pass(seed, 60)
    assert await step_until_nothing_is_left(operator) == 0
    resumed = await move_bulk_operation(operator, operation.id, BulkStatus.RUNNING, tenant_id=None)
    assert resumed.status == "Running"
    assert await step_until_nothing_is_left(operator) == 40


async def test_a_stop_is_final_and_keeps_what_was_started(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 50)
    operation = await started(operator, requeue_of(10))
    await step_bulk_operation(operator, horizon_seconds=0.95)
    await move_bulk_operation(operator, operation.id, BulkStatus.STOPPED, tenant_id=None)
    stopped = await move_bulk_operation(operator, operation.id, BulkStatus.STOPPED, tenant_id=None)
    assert (stopped.status, stopped.done, stopped.skipped) == ("Stopped", 10, 0)
    assert stopped.finished_at is not None
    assert await step_until_nothing_is_left(operator) == 0
    for status in (BulkStatus.PAUSED, BulkStatus.RUNNING):
        with pytest.raises(Conflict) as refused:
            await move_bulk_operation(operator, operation.id, status, tenant_id=None)
        assert refused.value.code == "bulk_operation_ended"
    with pytest.raises(Conflict):
        await pace_bulk_operation(operator, operation.id, 5, tenant_id=None)


async def test_another_tenants_operation_is_not_there(operator: Connection, seed: Seed) -> None:
    operation, _ = await start_bulk_operation(operator, requeue_of(), Requester("acme", "acme's"))
    for attempt in (
        move_bulk_operation(operator, operation.id, BulkStatus.STOPPED, tenant_id="other"),
        pace_bulk_operation(operator, operation.id, 5, tenant_id="other"),
        show_bulk_operation(operator, operation.id, tenant_id="other"),
    ):
        with pytest.raises(NotFound) as missing:
            await attempt
        assert missing.value.code == "bulk_operation_not_found"
    assert await bulk_operations.list_bulk_operations(operator, tenant_id="other") == []
    (listed,) = await bulk_operations.list_bulk_operations(
        operator, tenant_id="acme", status=BulkStatus.RUNNING
    )
    assert (listed.id, listed.status, listed.rate_per_second) == (operation.id, "Running", 1000)


@pytest.mark.parametrize("before", BulkStatus)
@pytest.mark.parametrize("after", BulkStatus)
async def test_the_database_knows_the_same_moves(
    operator: Connection, seed: Seed, before: BulkStatus, after: BulkStatus
) -> None:
    operation = await started(operator, requeue_of())
    ended = {BulkStatus.STOPPED, BulkStatus.COMPLETED}
    move = "UPDATE bulk_operations SET status = %s, finished_at = CASE WHEN %s THEN now() END WHERE id = %s"
    await seed.connection.execute(move, [before, before in ended, operation.id])
    legal = after in BULK_MOVES[before] or (before == after and before not in ended)
    with nullcontext() if legal else pytest.raises(psycopg.Error, match="not a legal move"):
        await seed.connection.execute(move, [after, after in ended, operation.id])
    await seed.rewrite("UPDATE bulk_operations SET status = 'Stopped', finished_at = now()")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bulk_operations SET reason = 'other'",
        "UPDATE bulk_operations SET until_id = until_id + 1",
        "UPDATE bulk_operations SET tenant_id = 'other'",
        "UPDATE bulk_operations SET done = done - 1",
        "DELETE FROM bulk_operations",
        "DELETE FROM bulk_operation_lanes",
        "TRUNCATE bulk_operation_lanes",
        "UPDATE webhook_delivery_sagas SET bulk_operation_id = NULL WHERE bulk_operation_id IS NOT NULL",
    ],
)
async def test_the_record_is_not_rewritten(operator: Connection, seed: Seed, change: str) -> None:
    await dead_letters(seed, await seed.subscription(), 5)
    await started(operator, requeue_of(1))
    await step_bulk_operation(operator, horizon_seconds=2)
    with pytest.raises(psycopg.Error) as refused:
        await seed.connection.execute(change.encode())
    assert refused.value.sqlstate == "HS001"


# Backfill


async def test_a_backfill_gives_old_events_their_first_saga(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription("a")
    await old_events(seed, subscription, 25)
    await old_events(seed, await seed.subscription("b"), 3)
    await old_events(seed, await seed.subscription("a", tenant_id="acme"), 3)
    assert (await count_bulk_operation(operator, backfill_of(subscription), ANYBODY)).matched == 25
    operation = await started(operator, backfill_of(subscription))
    assert (operation.matched, operation.tenant_id, operation.filter["event_types"]) == (25, "default", ["a"])
    assert await step_until_nothing_is_left(operator) == 25
    sagas = await requeued(seed)
    assert {(saga["subscription_id"], saga["requeued_from"]) for saga in sagas} == {(subscription, None)}
    assert [saga["event_id"] for saga in sagas] == sorted(saga["event_id"] for saga in sagas)
    assert await state(operator, operation.id) == ("Completed", 25, 25, 0)


async def test_a_backfill_again_delivers_nothing_again(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    await seed.saga(SagaStatus.COMPLETED, subscription)
    await seed.saga(SagaStatus.DEAD_LETTERED, subscription)
    await old_events(seed, subscription, 5)
    for count in (5, 0):
        await started(operator, backfill_of(subscription))
        assert await step_until_nothing_is_left(operator) == count


async def test_a_backfill_takes_the_beginning_of_its_range_and_not_the_end(
    operator: Connection, seed: Seed
) -> None:
    subscription, first = await seed.subscription(), datetime(2026, 1, 31, 12, tzinfo=UTC)
    await old_events(seed, subscription, 10, first)  # at 12:00:01 … 12:00:10
    wanted = backfill_of(subscription, since=first + timedelta(seconds=3), until=first + timedelta(seconds=6))
    await started(operator, wanted)
    assert await step_until_nothing_is_left(operator) == 3


async def test_events_of_one_moment_are_all_taken(operator: Connection, seed: Seed) -> None:
    """A batch of events has one created_at: the cursor goes by id within it."""
    subscription = await seed.subscription()
    await old_events(seed, subscription, 40)
    await seed.rewrite("UPDATE events SET created_at = '2026-01-31T12:00:00Z'")
    await started(operator, backfill_of(subscription, rate=3, since=datetime(2026, 1, 31, tzinfo=UTC)))
    for _ in range(20):
        await step_until_nothing_is_left(operator, horizon_seconds=0.9)
        await let_time_pass(seed, 1)
    assert len(await requeued(seed)) == 40


async def test_events_in_the_outbox_are_routed_and_backfilled_once(operator: Connection, seed: Seed) -> None:
    from hooksaga.stages.route_events import route_events

    subscription = await seed.subscription()
    events = [await seed.event_for(subscription) for _ in range(6)]
    await route_events(seed.connection, event_ids=events[:2])
    operation = await started(operator, backfill_of(subscription))
    assert operation.matched == 4
    await route_events(seed.connection, event_ids=events[2:4])
    assert await step_until_nothing_is_left(operator) == 2
    await route_events(seed.connection)
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 6
    assert await state(operator, operation.id) == ("Completed", 4, 2, 2)


@pytest.mark.parametrize("change", ["active = false", "event_types = '{other}'"])
async def test_a_backfill_ends_when_its_subscription_no_longer_takes_these_events(
    operator: Connection, seed: Seed, change: str
) -> None:
    subscription = await seed.subscription()
    await old_events(seed, subscription, 5)
    operation = await started(operator, backfill_of(subscription))
    await seed.connection.execute(f"UPDATE subscriptions SET {change} WHERE id = %s".encode(), [subscription])
    assert await step_until_nothing_is_left(operator) == 0
    assert await state(operator, operation.id) == ("Completed", 5, 0, 5)


async def test_a_backfill_is_refused_where_nothing_could_come_of_it(operator: Connection, seed: Seed) -> None:
    now = datetime.now(UTC)
    good, unverified = await seed.subscription(), await seed.subscription(verified=False)
    other_tenant = Requester("acme", "acme's")
    hour = timedelta(hours=1)
    for wanted, caller, kind, code in (
        (backfill_of(10**6), ANYBODY, NotFound, "subscription_not_found"),
        (backfill_of(good), other_tenant, NotFound, "subscription_not_found"),
        (backfill_of(unverified), ANYBODY, Conflict, "subscription_inactive"),
        (backfill_of(good, since=now + hour), ANYBODY, InvalidInput, "invalid_field"),
        (backfill_of(good, since=now - hour, until=now - hour), ANYBODY, InvalidInput, "invalid_field"),
    ):
        for use in (start_bulk_operation, count_bulk_operation):
            with pytest.raises(kind) as refused:
                await use(operator, wanted, caller)
            assert refused.value.code == code
    assert await seed.value("SELECT count(*) FROM bulk_operations") == 0


async def test_a_backfill_never_goes_behind_the_retention_horizon(operator: Connection, seed: Seed) -> None:
    """Deliveries that were deleted must not be repeated, even by a backfill that started before."""
    subscription, first = await seed.subscription(), datetime(2026, 1, 31, 12, tzinfo=UTC)
    await old_events(seed, subscription, 10, first)
    since = first - timedelta(hours=1)
    operation = await started(operator, backfill_of(subscription, since=since))
    await seed.connection.execute(
        "CREATE OR REPLACE FUNCTION retention_horizon() RETURNS timestamptz LANGUAGE sql STABLE"
        " SET search_path = pg_catalog, public AS $$ SELECT '2026-01-31T12:00:06Z'::timestamptz $$"
    )
    assert await step_until_nothing_is_left(operator) == 5
    assert await state(operator, operation.id) == ("Completed", 10, 5, 5)
    with pytest.raises(Conflict) as refused:
        await started(operator, backfill_of(subscription, since=since))
    assert refused.value.code == "before_retention_horizon"


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("backfill", {}),
        ("backfill", {"subscription_id": 1}),
        ("backfill", {"subscription_id": 1, "since": "2026-01-01T00:00:00Z", "error_code": "http_503"}),
        ("requeue", {"since": "2026-01-01T00:00:00Z"}),
    ],
)
def test_a_filter_is_of_its_kind(kind: str, wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the filter of a"):
        NewBulkOperation.model_validate({"kind": kind, "filter": wanted})


# What audit sees


async def test_the_audit_sees_counts_that_are_not_its_sagas(operator: Connection, seed: Seed) -> None:
    await dead_letters(seed, await seed.subscription(), 5)
    await started(operator, requeue_of())
    await step_until_nothing_is_left(operator)
    await seed.rewrite("UPDATE bulk_operations SET done = 4, skipped = 1")
    found = await seed.findings()
    assert found == {"bulk_operation_counts_wrong"}
    await seed.rewrite("UPDATE bulk_operations SET done = 5, skipped = 0, until_id = 3")
    found = await seed.findings()
    assert found == {"bulk_saga_beyond_its_operation"}
    await seed.rewrite("UPDATE bulk_operations SET until_id = 5")


async def test_an_operation_whose_next_saga_is_refused_is_told_of_and_passed_by(
    operator: Connection, seed: Seed
) -> None:
    """Earlier sagas, and other operations, are started anyway."""
    subscription = await seed.subscription()
    await dead_letters(seed, subscription, 3)
    ids = [row["id"] for row in await seed.rows("SELECT id FROM dead_letters ORDER BY id")]
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT broken CHECK (requeued_from <> {}) NOT VALID"
        ).format(ids[1])
    )
    stuck = await started(operator, requeue_of(subscription_id=subscription))
    other = await seed.subscription()
    await dead_letters(seed, other, 2)
    free = await started(operator, requeue_of(subscription_id=other))
    first = await step_bulk_operation(operator, horizon_seconds=60)
    assert (first.operation_id, len(first.saga_ids), first.refused) == (stuck.id, 1, [])
    second = await step_bulk_operation(operator, horizon_seconds=60)
    assert (second.operation_id, len(second.saga_ids)) == (free.id, 2)
    third = await step_bulk_operation(operator, horizon_seconds=60, passed_by=frozenset({free.id}))
    assert (third.operation_id, third.saga_ids) == (stuck.id, [])
    (told,) = third.refused
    assert (told.bulk_operation_id, told.reason) == (
        stuck.id,
        "CheckViolation [23514], table webhook_delivery_sagas, constraint broken, function step_bulk_operation",
    )
    await seed.connection.execute("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT broken")
    assert await step_until_nothing_is_left(operator) == 2
    assert await state(operator, stuck.id) == ("Completed", 3, 3, 0)
