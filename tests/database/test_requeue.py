"""A dead letter comes back as a brand-new saga: once, whoever asks, and the old one stays as it is."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import Conflict, NotFound, RefusedRow
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.requeue import DeadLetterFilter, requeue_dead_letters, requeue_matching, requeue_one
from tests.conftest import SessionOf
from tests.database import orchestrate
from tests.database.seed import POLICY, Seed, saga_row


async def test_a_requeue_is_a_new_saga_of_the_same_pair(operator: Connection, seed: Seed) -> None:
    dead_letter_id = await seed.dead_letter()
    dead = await seed.row("SELECT * FROM dead_letters")
    requeued = await requeue_one(operator, dead_letter_id)
    assert requeued.created
    new = await saga_row(seed, requeued.saga_id)
    assert (new["event_id"], new["subscription_id"]) == (dead["event_id"], dead["subscription_id"])
    assert (new["status"], new["attempt_count"], new["requeued_from"]) == ("Pending", 0, dead_letter_id)
    assert new["final_error_code"] is None
    assert requeued.saga_id != dead["saga_id"]


async def test_no_job_is_made_by_a_requeue_but_by_the_orchestrator(operator: Connection, seed: Seed) -> None:
    requeued = await requeue_one(operator, await seed.dead_letter())
    jobs = "SELECT count(*) FROM webhook_delivery_jobs WHERE saga_id = %s"
    assert await seed.value(jobs, [requeued.saga_id]) == 0
    (moved,) = await orchestrate.start_all(seed.connection, POLICY)
    assert moved.saga_id == requeued.saga_id
    assert await seed.value(jobs, [requeued.saga_id]) == 1


async def test_twenty_requeues_at_once_make_one_saga(session_of: SessionOf, seed: Seed) -> None:
    dead_letter_id = await seed.dead_letter()
    sessions = [session_of(Role.ADMIN) for _ in range(20)]
    answers = await asyncio.gather(
        *(session.run(lambda connection: requeue_one(connection, dead_letter_id)) for session in sessions)
    )
    assert len({answer.saga_id for answer in answers}) == 1
    assert [answer.created for answer in answers].count(True) == 1
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 2


async def test_a_requeue_again_after_success_gives_the_same_saga(operator: Connection, seed: Seed) -> None:
    dead_letter_id = await seed.dead_letter()
    first = await requeue_one(operator, dead_letter_id)
    assert first.saga_id is not None
    await seed.finish(await seed.start(first.saga_id))
    await orchestrate.apply_results(seed.connection, POLICY)
    assert await seed.status_of(first.saga_id) is SagaStatus.COMPLETED
    again = await requeue_one(operator, dead_letter_id)
    assert (again.saga_id, again.created) == (first.saga_id, False)


async def test_a_requeue_again_after_the_subscription_stopped_gives_the_same_saga(
    operator: Connection, seed: Seed
) -> None:
    dead_letter_id = await seed.dead_letter()
    first = await requeue_one(operator, dead_letter_id)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    assert (await requeue_one(operator, dead_letter_id)).saga_id == first.saga_id


@pytest.mark.parametrize("stopped", ["active = false", "verified = false", "deleted_at = now()"])
async def test_no_saga_for_a_subscription_that_takes_nothing(
    operator: Connection, seed: Seed, stopped: str
) -> None:
    dead_letter_id = await seed.dead_letter()
    await seed.connection.execute(f"UPDATE subscriptions SET {stopped}".encode())
    with pytest.raises(Conflict) as refused:
        await requeue_one(operator, dead_letter_id)
    assert refused.value.code == "subscription_inactive"
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 1


async def test_the_old_saga_and_its_dead_letter_stay_as_they_are(operator: Connection, seed: Seed) -> None:
    dead_letter_id = await seed.dead_letter()
    old = await seed.row("SELECT * FROM webhook_delivery_sagas")
    letter = await seed.row("SELECT *, payload_snapshot::text AS text FROM dead_letters")
    await requeue_one(operator, dead_letter_id)
    assert await saga_row(seed, old["id"]) == old
    assert await seed.row("SELECT *, payload_snapshot::text AS text FROM dead_letters") == letter


async def test_a_requeued_saga_that_dies_is_a_dead_letter_of_its_own(
    operator: Connection, seed: Seed
) -> None:
    first = await requeue_one(operator, await seed.dead_letter(await seed.subscription(max_retry_limit=1)))
    assert first.saga_id is not None
    await seed.finish(await seed.start(first.saga_id), "http_500")
    (dead,) = await orchestrate.apply_results(seed.connection, POLICY)
    assert dead.dead_letter_id is not None
    second = await requeue_one(operator, dead.dead_letter_id)
    assert second.created
    assert second.saga_id != first.saga_id


async def test_an_unknown_dead_letter_is_not_found(operator: Connection) -> None:
    with pytest.raises(NotFound) as missing:
        await requeue_one(operator, 10**12)
    assert missing.value.code == "dead_letter_not_found"


async def test_many_at_once_are_answered_one_by_one(operator: Connection, seed: Seed) -> None:
    done, stopped, fresh = [await seed.dead_letter() for _ in range(3)]
    await requeue_one(operator, done)
    await seed.connection.execute(
        "UPDATE subscriptions SET active = false"
        " WHERE id = (SELECT subscription_id FROM dead_letters WHERE id = %s)",
        [stopped],
    )
    answers = await requeue_dead_letters(operator, [fresh, done, stopped, fresh, 10**12])
    assert [(answer.dead_letter_id, answer.created, answer.reason) for answer in answers] == [
        (done, False, None),
        (stopped, False, "subscription_inactive"),
        (fresh, True, None),
    ]


async def test_a_filter_requeues_what_it_names_and_nothing_else(operator: Connection, seed: Seed) -> None:
    wanted_subscription = await seed.subscription("a", tenant_id="acme")
    wanted = await seed.dead_letter(wanted_subscription)
    await seed.dead_letter()
    event_type = DeadLetterFilter(event_type="a")
    for names in (
        event_type,
        DeadLetterFilter(tenant_id="acme"),
        DeadLetterFilter(subscription_id=wanted_subscription, error_code="http_503"),
    ):
        matches = await requeue_matching(operator, names, dry_run=True)
        assert (matches.matched, matches.requeued, matches.dry_run) == (1, [], True)
    matches = await requeue_matching(operator, event_type)
    assert [requeued.dead_letter_id for requeued in matches.requeued] == [wanted]
    assert (await requeue_matching(operator, event_type)).matched == 0


async def test_a_filter_by_time_takes_its_beginning_and_not_its_end(operator: Connection, seed: Seed) -> None:
    await seed.dead_letter()
    failed_at = await seed.value("SELECT failed_at FROM dead_letters")
    later = failed_at + timedelta(microseconds=1)
    counts = [
        (await requeue_matching(operator, wanted, dry_run=True)).matched
        for wanted in (
            DeadLetterFilter(failed_after=failed_at),
            DeadLetterFilter(failed_after=later),
            DeadLetterFilter(failed_before=failed_at),
            DeadLetterFilter(failed_before=later),
            DeadLetterFilter(failed_after=datetime(2020, 1, 1, tzinfo=UTC)),
        )
    ]
    assert counts == [1, 0, 0, 1, 1]


async def test_a_limit_counts_new_sagas_and_inactive_ones_block_nobody(
    operator: Connection, seed: Seed
) -> None:
    stopped = await seed.subscription()
    for _ in range(3):
        await seed.dead_letter(stopped)
    good = [await seed.dead_letter() for _ in range(3)]
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [stopped])
    matches = await requeue_matching(operator, DeadLetterFilter(), limit=2)
    assert [requeued.dead_letter_id for requeued in matches.requeued] == good[:2]
    assert matches.matched == len(matches.requeued) + matches.skipped


async def canceled(seed: Seed, subscription_id: int) -> int:
    """A dead letter that an operator made."""
    moved = await orchestrate.cancel_saga(
        seed.connection, POLICY, await seed.saga(subscription_id=subscription_id)
    )
    assert moved.dead_letter_id is not None
    return moved.dead_letter_id


@pytest.mark.parametrize("by_subscription", [False, True])
async def test_what_was_canceled_is_requeued_only_by_a_filter_that_names_it(
    operator: Connection, seed: Seed, by_subscription: bool
) -> None:
    failed = await seed.dead_letter()
    subscription = await seed.value("SELECT subscription_id FROM dead_letters")
    stopped = await canceled(seed, subscription)
    wanted = DeadLetterFilter(subscription_id=subscription if by_subscription else None)
    assert (await requeue_matching(operator, wanted, dry_run=True)).matched == 1
    assert [one.dead_letter_id for one in (await requeue_matching(operator, wanted)).requeued] == [failed]
    named = replace(wanted, error_code="canceled")
    assert (await requeue_matching(operator, named, dry_run=True)).matched == 1
    assert [one.dead_letter_id for one in (await requeue_matching(operator, named)).requeued] == [stopped]


async def test_what_was_canceled_is_requeued_by_its_id(operator: Connection, seed: Seed) -> None:
    assert (await requeue_one(operator, await canceled(seed, await seed.subscription()))).created


async def test_dead_letters_that_the_database_does_not_let_be_requeued_are_told_and_hold_up_nobody(
    operator: Connection, seed: Seed
) -> None:
    letters = [await seed.dead_letter() for _ in range(5)]
    sick = (letters[0], letters[3])
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT broken CHECK (requeued_from NOT IN ({}, {})) NOT VALID"
        ).format(*sick)
    )
    told: list[RefusedRow] = []
    done = await requeue_matching(operator, DeadLetterFilter(), on_refusal=told.append)
    assert [one.dead_letter_id for one in done.requeued] == [one for one in letters if one not in sick]
    assert (done.matched, done.skipped) == (5, 2)
    assert [row.dead_letter_id for row in told] == list(sick)
