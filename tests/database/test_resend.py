"""An ended delivery is sent again as a new saga, whatever its result was; a waiting one is tried at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg
import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.bulk_operations import count_bulk_operation, show_bulk_operation
from hooksaga.operations.requeue import DeadLetterFilter, requeue_matching, requeue_one
from hooksaga.operations.resend import resend_saga, retry_saga_now, retry_subscription_now
from tests.conftest import SessionOf
from tests.database import orchestrate
from tests.database.bulk_rows import ANYBODY, LONG_AGO, resend_of, started, step_until_nothing_is_left
from tests.database.seed import POLICY, Seed, saga_row

pytestmark = pytest.mark.usefixtures("audited")


async def delivered(seed: Seed, subscription_id: int | None = None) -> int:
    """A Completed saga."""
    return await seed.saga(SagaStatus.COMPLETED, subscription_id)


async def end(seed: Seed, saga_id: int, error_code: str | None = None) -> int:
    await seed.finish(await seed.start(saga_id), *([error_code] if error_code else []))
    await orchestrate.apply_results(seed.connection, POLICY)
    return saga_id


# One saga


async def test_a_delivered_saga_is_sent_again_as_a_new_one(operator: Connection, seed: Seed) -> None:
    old = await saga_row(seed, await delivered(seed))
    resent = await resend_saga(operator, old["id"], tenant_id=None)
    assert resent.created
    new = await saga_row(seed, resent.saga_id)
    assert (new["event_id"], new["subscription_id"]) == (old["event_id"], old["subscription_id"])
    assert (new["status"], new["resent_from"], new["requeued_from"]) == ("Pending", old["id"], None)
    assert await saga_row(seed, old["id"]) == old
    (moved,) = await orchestrate.start_all(seed.connection, POLICY)
    assert moved.saga_id == resent.saga_id


async def test_a_repeat_finds_the_resend_until_it_has_ended(operator: Connection, seed: Seed) -> None:
    origin = await delivered(seed)
    first = await resend_saga(operator, origin, tenant_id=None)
    again = await resend_saga(operator, origin, tenant_id=None)
    assert (again.saga_id, again.created) == (first.saga_id, False)
    assert first.saga_id is not None
    await end(seed, first.saga_id)
    third = await resend_saga(operator, origin, tenant_id=None)
    assert third.created
    assert third.saga_id != first.saga_id


async def test_twenty_resends_at_once_make_one_saga(session_of: SessionOf, seed: Seed) -> None:
    origin = await delivered(seed)
    sessions = [session_of(Role.ADMIN) for _ in range(20)]
    answers = await asyncio.gather(
        *(
            session.run(lambda connection: resend_saga(connection, origin, tenant_id=None))
            for session in sessions
        )
    )
    assert len({answer.saga_id for answer in answers}) == 1
    assert [answer.created for answer in answers].count(True) == 1


async def test_the_resend_of_a_dead_letter_is_its_requeue(operator: Connection, seed: Seed) -> None:
    letter = await seed.dead_letter()
    dead = await seed.row("SELECT * FROM dead_letters")
    resent = await resend_saga(operator, dead["saga_id"], tenant_id=None)
    assert (await saga_row(seed, resent.saga_id))["requeued_from"] == letter
    assert (await requeue_one(operator, letter)).saga_id == resent.saga_id
    assert (await requeue_matching(operator, DeadLetterFilter())).matched == 0


async def test_a_requeue_names_the_saga_that_it_sends_again(operator: Connection, seed: Seed) -> None:
    letter = await seed.dead_letter()
    dead = await seed.row("SELECT * FROM dead_letters")
    requeued = await requeue_one(operator, letter)
    assert (await saga_row(seed, requeued.saga_id))["resent_from"] == dead["saga_id"]
    found = await resend_saga(operator, dead["saga_id"], tenant_id=None)
    assert (found.saga_id, found.created) == (requeued.saga_id, False)


async def test_a_requeued_dead_letter_can_be_resent_once_its_requeue_has_ended(
    operator: Connection, seed: Seed
) -> None:
    letter = await seed.dead_letter()
    dead = await seed.row("SELECT * FROM dead_letters")
    first = await requeue_one(operator, letter)
    assert first.saga_id is not None
    await end(seed, first.saga_id)
    second = await resend_saga(operator, dead["saga_id"], tenant_id=None)
    assert second.created
    assert (await saga_row(seed, second.saga_id))["requeued_from"] is None
    assert (await requeue_one(operator, letter)).saga_id == first.saga_id


async def test_a_saga_that_has_not_ended_is_not_resent(operator: Connection, seed: Seed) -> None:
    waiting = await seed.saga()
    with pytest.raises(Conflict) as refused:
        await resend_saga(operator, waiting, tenant_id=None)
    assert refused.value.code == "saga_not_ended"
    await seed.start(waiting)
    with pytest.raises(Conflict) as refused:
        await resend_saga(operator, waiting, tenant_id=None)
    assert refused.value.code == "saga_not_ended"


async def test_an_inactive_subscription_gets_no_resend(operator: Connection, seed: Seed) -> None:
    origin = await delivered(seed)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    with pytest.raises(Conflict) as refused:
        await resend_saga(operator, origin, tenant_id=None)
    assert refused.value.code == "subscription_inactive"
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 1


async def test_another_tenants_saga_is_unknown(operator: Connection, seed: Seed) -> None:
    origin = await delivered(seed)
    for call in (resend_saga, retry_saga_now):
        with pytest.raises(NotFound):
            await call(operator, origin, tenant_id="rival")
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 1


async def test_the_database_refuses_the_resend_of_another_pair(seed: Seed) -> None:
    origin, other = await delivered(seed), await seed.saga()
    pair = await saga_row(seed, other)
    insert = "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, resent_from) VALUES (%s, %s, %s)"
    for named in (origin, other):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            await seed.connection.execute(insert, [pair["event_id"], pair["subscription_id"], named])
        await seed.connection.rollback()


# Many


async def test_many_are_resent_by_the_time_of_their_end(operator: Connection, seed: Seed) -> None:
    one, other = await seed.subscription("a"), await seed.subscription("b")
    sagas = [await delivered(seed, one) for _ in range(3)] + [await delivered(seed, other)]
    for wanted, count in (
        (resend_of(), 4),
        (resend_of(subscription_id=one), 3),
        (resend_of(event_type="b"), 1),
        (resend_of(status="DeadLettered"), 0),
        (resend_of(ended_before=LONG_AGO + timedelta(days=1)), 0),
        (resend_of(ended_after=datetime.now(UTC) + timedelta(hours=1)), 0),
    ):
        assert (await count_bulk_operation(operator, wanted, ANYBODY)).matched == count
    operation = await started(operator, resend_of(subscription_id=one, status="Completed"))
    assert await step_until_nothing_is_left(operator) == 3
    rows = await seed.rows(
        "SELECT resent_from, requeued_from, bulk_operation_id FROM webhook_delivery_sagas"
        " WHERE resent_from IS NOT NULL ORDER BY resent_from"
    )
    assert [row["resent_from"] for row in rows] == sagas[:3]
    assert {(row["requeued_from"], row["bulk_operation_id"]) for row in rows} == {(None, operation.id)}
    ended = await show_bulk_operation(operator, operation.id, tenant_id=None)
    assert (ended.status, ended.matched, ended.done, ended.skipped) == ("Completed", 3, 3, 0)


async def test_each_event_is_resent_once_by_its_newest_delivery(operator: Connection, seed: Seed) -> None:
    origin = await delivered(seed)
    newest = await resend_saga(operator, origin, tenant_id=None)
    assert newest.saga_id is not None
    assert (await count_bulk_operation(operator, resend_of(), ANYBODY)).matched == 0  # it is under way
    await end(seed, newest.saga_id)
    await started(operator, resend_of())
    assert await step_until_nothing_is_left(operator) == 1
    last = await seed.row("SELECT resent_from FROM webhook_delivery_sagas ORDER BY id DESC LIMIT 1")
    assert last["resent_from"] == newest.saga_id


async def test_dead_letters_among_the_resent_count_as_requeued(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription(max_retry_limit=1)
    await end(seed, await seed.saga(subscription_id=subscription), "http_503")
    await delivered(seed, subscription)
    assert (await count_bulk_operation(operator, resend_of(error_code="http_503"), ANYBODY)).matched == 1
    await started(operator, resend_of())
    assert await step_until_nothing_is_left(operator) == 2
    assert (await requeue_matching(operator, DeadLetterFilter())).matched == 0


async def test_a_resend_of_many_goes_on_after_each_position(operator: Connection, seed: Seed) -> None:
    """All attempts ended at the same moment: their ids alone say where a step goes on."""
    subscription = await seed.subscription()
    for _ in range(7):
        await delivered(seed, subscription)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = '2026-01-31T12:00:00Z'")
    operation = await started(operator, resend_of())
    assert await step_until_nothing_is_left(operator, horizon_seconds=0.002) == 7
    rows = await seed.rows(
        "SELECT resent_from FROM webhook_delivery_sagas WHERE bulk_operation_id IS NOT NULL"
    )
    assert len({row["resent_from"] for row in rows}) == 7
    ended = await show_bulk_operation(operator, operation.id, tenant_id=None)
    assert (ended.status, ended.done) == ("Completed", 7)


# Retry now


async def waiting_saga(seed: Seed, subscription_id: int) -> int:
    """A saga that waits for its retry."""
    return await end(seed, await seed.saga(subscription_id=subscription_id), "http_503")


async def test_a_waiting_saga_is_tried_now(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    saga_id = await waiting_saga(seed, subscription)
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    assert (await retry_saga_now(operator, saga_id, tenant_id=None)).retried == 1
    (moved,) = await orchestrate.start_all(seed.connection, POLICY)
    assert moved.saga_id == saga_id
    with pytest.raises(Conflict) as refused:
        await retry_saga_now(operator, saga_id, tenant_id=None)
    assert refused.value.code == "saga_not_waiting"


async def test_all_of_a_subscription_are_tried_now_and_no_others(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    wanted = {await waiting_saga(seed, subscription) for _ in range(3)}
    await waiting_saga(seed, await seed.subscription("b"))
    done = await retry_subscription_now(operator, subscription, tenant_id=None)
    assert done.retried == 3
    moved = await orchestrate.start_all(seed.connection, POLICY)
    assert {move.saga_id for move in moved} == wanted
    with pytest.raises(Conflict) as refused:
        await retry_subscription_now(operator, subscription, tenant_id=None)
    assert refused.value.code == "nothing_waits"


async def test_the_pace_of_a_bulk_operation_stays(operator: Connection, seed: Seed) -> None:
    """What a bulk operation planned ahead is no retry."""
    subscription = await seed.subscription()
    await delivered(seed, subscription)
    await started(operator, resend_of())
    await step_until_nothing_is_left(operator)
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() + interval '1 h'"
        " WHERE bulk_operation_id IS NOT NULL"
    )
    with pytest.raises(Conflict):
        await retry_subscription_now(operator, subscription, tenant_id=None)


BREAKER_IS_OPEN: LiteralString = (
    "UPDATE subscription_flow"
    " SET breaker_opened_at = now(), probe_at = now() + interval '1 h', failures_in_a_row = 10"
)


@pytest.mark.parametrize(
    "closed",
    [
        "UPDATE subscription_flow SET retry_after_until = now() + interval '1 h'",
        BREAKER_IS_OPEN,
    ],
)
async def test_a_retry_now_opens_what_the_endpoint_closed(
    operator: Connection, seed: Seed, closed: LiteralString
) -> None:
    subscription = await seed.subscription()
    saga_id = await waiting_saga(seed, subscription)
    await seed.rewrite(closed)
    await seed.rewrite("UPDATE webhook_delivery_sagas SET next_attempt_at = now() - interval '1 s'")
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    assert (await retry_saga_now(operator, saga_id, tenant_id=None)).retried == 1
    (moved,) = await orchestrate.start_all(seed.connection, POLICY)
    assert moved.saga_id == saga_id


async def test_a_paused_subscription_stays_paused(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    saga_id = await waiting_saga(seed, subscription)
    await seed.connection.execute("UPDATE subscriptions SET paused_at = now()")
    assert (await retry_saga_now(operator, saga_id, tenant_id=None)).retried == 1
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    assert await seed.status_of(saga_id) is SagaStatus.PENDING_RETRY


async def test_an_inactive_subscription_retries_nothing(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription()
    saga_id = await waiting_saga(seed, subscription)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    for call, named in ((retry_saga_now, saga_id), (retry_subscription_now, subscription)):
        with pytest.raises(Conflict) as refused:
            await call(operator, named, tenant_id=None)
        assert refused.value.code == "subscription_inactive"
