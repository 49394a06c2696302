"""Retention of dead letters, payloads and events: what is old and over goes, with all that refers to it; the rest
stays whole, and what was deleted is written down."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, LiteralString

import psycopg
import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.event_input import EventDraft
from hooksaga.core.retention import RetentionKind, RetentionPolicy
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect, requeue, resend
from hooksaga.operations.explain import explain_event
from hooksaga.operations.prune import (
    Pruned,
    Pruning,
    RetentionWalk,
    plan_retention,
    prune,
    prune_batch,
    read_lag,
)
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.seed import POLICY, Seed, as_retention_role

MONTH = timedelta(days=30)
COUNTS: LiteralString = (
    "SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM webhook_delivery_sagas) AS sagas,"
    " (SELECT count(*) FROM webhook_delivery_jobs) AS jobs, (SELECT count(*) FROM dead_letters) AS dead_letters,"
    " (SELECT count(*) FROM routing_decisions) AS decisions"
)
DEAD, EVENTS, PAYLOADS = RetentionKind.DEAD_LETTERS, RetentionKind.EVENTS, RetentionKind.PAYLOADS
DELIVERIES = RetentionKind.DELIVERIES


@pytest.fixture
async def retention(connect: Connect) -> Connection:
    return await connect(Role.RETENTION)


async def pruned(connection: Connection, kind: RetentionKind, **options: Any) -> Pruned:
    return await prune(partial(prune_batch, connection, Pruning(MONTH, kind=kind, **options)))


async def counts(seed: Seed) -> tuple[int, ...]:
    return tuple((await seed.row(COUNTS)).values())


async def old(seed: Seed, status: SagaStatus = SagaStatus.COMPLETED, days: float = 40) -> int:
    return await seed.make_old(await seed.saga(status), days)


async def dead_letter_of(seed: Seed, saga_id: int) -> int:
    return await seed.value("SELECT id FROM dead_letters WHERE saga_id = %s", [saga_id])


async def event_of(seed: Seed, saga_id: int) -> Any:
    return await seed.value(
        "SELECT e.webhook_id FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id WHERE s.id = %s",
        [saga_id],
    )


# Dead letters.


async def test_an_old_dead_letter_goes_with_its_delivery_and_attempts(
    retention: Connection, seed: Seed
) -> None:
    await old(seed, SagaStatus.DEAD_LETTERED)
    await old(seed, SagaStatus.DEAD_LETTERED, days=20)
    done = await pruned(retention, DEAD)
    assert (done.dead_letters, done.sagas, done.jobs) == (1, 1, 1)
    assert await counts(seed) == (2, 1, 1, 1, 2)
    assert await seed.findings() == set()


async def test_a_dead_letter_goes_only_with_its_whole_pair(
    retention: Connection, operator: Connection, seed: Seed
) -> None:
    """A requeue that is open or young keeps it; then the whole chain goes at once."""
    saga_id = await old(seed, SagaStatus.DEAD_LETTERED)
    again = await requeue.requeue_one(operator, await dead_letter_of(seed, saga_id))
    assert again.saga_id is not None
    assert (await pruned(retention, DEAD)).rows == 0
    await seed.finish(await seed.start(again.saga_id))
    await orchestrate.apply_results(seed.connection, POLICY)
    assert (await pruned(retention, DEAD)).rows == 0
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET updated_at = now() - interval '40 days' WHERE id = %s",
        [again.saga_id],
    )
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = now() - interval '40 days'")
    done = await pruned(retention, DEAD)
    assert (done.dead_letters, done.sagas, done.jobs) == (1, 2, 2)
    assert await seed.findings() == set()


async def test_a_dead_letter_that_is_to_be_told_stays(retention: Connection, seed: Seed) -> None:
    await seed.subscription("hooksaga.delivery.dead_lettered")
    await old(seed, SagaStatus.DEAD_LETTERED)
    assert await seed.value("SELECT count(*) FROM operational_outbox") == 1
    assert (await pruned(retention, DEAD)).rows == 0
    await seed.rewrite("DELETE FROM operational_outbox")
    assert (await pruned(retention, DEAD)).dead_letters == 1


@pytest.mark.parametrize("table", ["dead_letters", "webhook_delivery_sagas", "webhook_delivery_jobs"])
async def test_a_dead_letter_of_which_a_row_is_locked_stays_whole(
    retention: Connection, owner: Connection, seed: Seed, table: LiteralString
) -> None:
    await old(seed, SagaStatus.DEAD_LETTERED)
    async with owner.transaction():
        await owner.execute(f"SELECT id FROM {table} FOR KEY SHARE")  # pyright: ignore[reportCallIssue, reportArgumentType]
        assert (await pruned(retention, DEAD)).rows == 0
    assert (await pruned(retention, DEAD)).dead_letters == 1


async def test_what_is_gone_answers_404(retention: Connection, operator: Connection, seed: Seed) -> None:
    saga_id = await old(seed, SagaStatus.DEAD_LETTERED)
    dead_letter = await dead_letter_of(seed, saga_id)
    await pruned(retention, DEAD)
    for call in (
        inspect.show_dead_letter(operator, dead_letter, tenant_id=None),
        requeue.requeue_one(operator, dead_letter),
        resend.resend_saga(operator, saga_id, tenant_id=None),
    ):
        with pytest.raises(NotFound):
            await call


# Events.


async def test_an_event_goes_after_its_last_delivery(retention: Connection, seed: Seed) -> None:
    await old(seed)
    await old(seed, SagaStatus.PENDING_RETRY)
    await old(seed, SagaStatus.DEAD_LETTERED)
    await old(seed, days=20)
    assert (await pruned(retention, EVENTS)).rows == 0
    done = await pruned(retention, DELIVERIES)
    assert (done.sagas, done.events) == (1, 1)
    assert await counts(seed) == (3, 3, 2, 1, 3)
    assert await seed.findings() == set()


async def test_an_event_without_deliveries_goes(retention: Connection, seed: Seed) -> None:
    event_id = await seed.event("nobody.listens")
    await route_events(seed.connection)
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days' WHERE id = %s", [event_id])
    assert (await pruned(retention, EVENTS)).events == 1
    assert await counts(seed) == (0, 0, 0, 0, 0)


async def test_an_event_that_was_routed_in_parts_goes_with_all_decisions(
    retention: Connection, router: Connection, seed: Seed
) -> None:
    for _ in range(3):
        await seed.subscription("a")
    event_id = await seed.event("a")
    for _ in range(2):
        await route_events(router, wide_from=2, part_size=2)
    assert await seed.value("SELECT count(*) FROM routing_decisions_of_later_parts") == 1
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")  # as if their time had come first
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days' WHERE id = %s", [event_id])
    assert await counts(seed) == (1, 0, 0, 0, 2)
    assert (await pruned(retention, EVENTS)).events == 1
    assert await counts(seed) == (0, 0, 0, 0, 0)


async def test_the_last_dead_letter_takes_its_event_along(retention: Connection, seed: Seed) -> None:
    """Whether the walk over events comes before or after."""
    await old(seed, SagaStatus.DEAD_LETTERED)
    assert (await pruned(retention, EVENTS)).rows == 0
    assert (await pruned(retention, DEAD)).events == 1
    assert await counts(seed) == (0, 0, 0, 0, 0)


async def test_an_unrouted_or_locked_event_is_taken_by_a_later_batch(
    retention: Connection, owner: Connection, seed: Seed
) -> None:
    waiting = await seed.event("nobody.listens")
    locked = await seed.event("nobody.listens")
    await route_events(seed.connection, event_ids=[locked])
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days'")
    async with owner.transaction():
        await owner.execute("SELECT id FROM events WHERE id = %s FOR KEY SHARE", [locked])
        assert (await pruned(retention, EVENTS)).rows == 0
    assert (await pruned(retention, EVENTS)).events == 1
    await route_events(seed.connection, event_ids=[waiting])
    assert (await pruned(retention, EVENTS)).events == 1
    assert await seed.value("SELECT count(*) FROM retention_left") == 0


async def test_the_walk_goes_on_where_it_was(retention: Connection, seed: Seed) -> None:
    for _ in range(5):
        await seed.event("nobody.listens")
    await route_events(seed.connection)
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days' + id * interval '1 second'")
    one_by_one = Pruning(MONTH, batch=2, kind=EVENTS)
    assert [(await prune_batch(retention, one_by_one)).events for _ in range(4)] == [2, 2, 1, 0]


async def test_a_repeat_of_a_key_whose_event_is_gone_is_a_new_event(
    retention: Connection, seed: Seed
) -> None:
    draft = EventDraft("nobody.listens", "{}", external_id="once")
    (first,) = await seed.accept(draft)
    (again,) = await seed.accept(draft)
    assert (again.id, again.duplicate) == (first.id, True)
    await route_events(seed.connection)
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days'")
    await pruned(retention, EVENTS)
    (new,) = await seed.accept(draft)
    assert new.id != first.id
    assert not new.duplicate


async def test_a_missing_event_says_that_it_is_older_than_the_horizon(
    retention: Connection, operator: Connection, seed: Seed
) -> None:
    event_id = await seed.event("nobody.listens")
    await route_events(seed.connection)
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_id])
    old_id = type(webhook_id)(int=webhook_id.int - ((40 * 86_400_000) << 80))
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days', webhook_id = %s", [old_id])
    await pruned(retention, EVENTS)
    for call in (
        inspect.show_event(operator, old_id, tenant_id=None),
        explain_event(operator, old_id, tenant_id=None, default_attempt_limit=5),
    ):
        with pytest.raises(NotFound, match="may have been deleted by retention"):
            await call
    with pytest.raises(NotFound) as refused:
        await inspect.show_event(operator, webhook_id, tenant_id=None)
    assert "retention" not in str(refused.value)


async def test_a_really_lost_event_is_still_found(retention: Connection, seed: Seed) -> None:
    await old(seed)
    await pruned(retention, DELIVERIES)
    await pruned(retention, EVENTS)
    assert await counts(seed) == (0, 0, 0, 0, 0)
    await old(seed)
    await seed.saga(SagaStatus.COMPLETED)
    await seed.rewrite("DELETE FROM events")
    assert "row_that_names_what_is_not_there" in await seed.findings()


# Payloads.


async def test_a_payload_goes_earlier_than_its_row(
    retention: Connection, operator: Connection, seed: Seed
) -> None:
    saga_id = await old(seed, SagaStatus.DEAD_LETTERED)
    await old(seed)
    waiting = await old(seed, SagaStatus.PENDING_RETRY)
    await old(seed, days=20)
    assert (await pruned(retention, PAYLOADS, dry_run=True)).payloads == 2
    assert (await pruned(retention, PAYLOADS)).payloads == 2
    assert await seed.value("SELECT count(*) FROM events WHERE payload IS NOT NULL") == 2
    assert await seed.value("SELECT count(*) FROM dead_letters WHERE payload_snapshot IS NOT NULL") == 0
    assert await seed.findings() == set()
    event = await inspect.show_event(operator, await event_of(seed, saga_id), tenant_id=None)
    assert (event.payload, event.is_erased) == (None, False)
    assert event.payload_removed_at is not None
    await seed.make_due(waiting)
    await seed.finish(await seed.start(waiting))
    await orchestrate.apply_results(seed.connection, POLICY)
    assert (await pruned(retention, PAYLOADS)).payloads == 1


async def test_a_delivery_without_payload_cannot_be_sent_again(
    retention: Connection, operator: Connection, seed: Seed
) -> None:
    saga_id = await old(seed, SagaStatus.DEAD_LETTERED)
    dead_letter = await dead_letter_of(seed, saga_id)
    await pruned(retention, PAYLOADS)
    for call in (
        requeue.requeue_one(operator, dead_letter),
        resend.resend_saga(operator, saga_id, tenant_id=None),
    ):
        with pytest.raises(Conflict) as refused:
            await call
        assert refused.value.code == "payload_removed"
    matched = await requeue.requeue_matching(operator, requeue.DeadLetterFilter())
    assert matched.matched == 0


async def test_a_repeat_of_an_event_without_payload_gets_the_first_answer(
    retention: Connection, seed: Seed
) -> None:
    draft = EventDraft("nobody.listens", "{}", external_id="once")
    (first,) = await seed.accept(draft)
    await route_events(seed.connection)
    await seed.rewrite("UPDATE events SET created_at = now() - interval '40 days'")
    await pruned(retention, PAYLOADS)
    (again,) = await accept_events(seed.connection, [draft])
    assert isinstance(again, AcceptedEvent)
    assert (again.id, again.duplicate) == (first.id, True)


# The record, the pace, the lag.


async def test_each_day_keeps_what_was_deleted(
    retention: Connection, operator: Connection, seed: Seed
) -> None:
    for status in (SagaStatus.COMPLETED, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED):
        await old(seed, status)
    for kind in (DELIVERIES, PAYLOADS, DEAD, EVENTS):
        await pruned(retention, kind)
    rows = await (
        await operator.execute("SELECT kind, outcome, deleted FROM retention_days ORDER BY kind, outcome")
    ).fetchall()
    assert rows == [
        ("attempts", "Completed", 2),
        ("attempts", "Failed", 1),
        ("dead_letters", "http_503", 1),
        ("deliveries", "Completed", 2),
        ("deliveries", "DeadLettered", 1),
        ("events", "", 3),
        ("payloads", "", 3),
    ]
    for change in (
        "UPDATE retention_days SET deleted = deleted - 1",
        "DELETE FROM retention_days",
        "TRUNCATE retention_days",
    ):
        with pytest.raises(psycopg.Error) as refused:
            await seed.connection.execute(change)
        assert refused.value.sqlstate == "HS001"


async def test_a_walk_deletes_every_kind_batch_by_batch(retention: Connection, seed: Seed) -> None:
    for status in (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED):
        await old(seed, status)
    policy = RetentionPolicy(deliveries=MONTH, dead_letters=MONTH, payloads=MONTH, events=MONTH)
    walk = RetentionWalk(policy)
    await walk.step(partial(_run, retention))
    while not walk.begins:
        await walk.step(partial(_run, retention))
    assert await counts(seed) == (0, 0, 0, 0, 0)


async def _run(connection: Connection, wanted: Pruning, after: Any) -> Pruned:
    return await prune_batch(connection, wanted, after)


async def test_a_walk_without_ages_does_nothing(retention: Connection) -> None:
    assert await RetentionWalk(RetentionPolicy()).step(partial(_run, retention)) is None


async def test_the_lag_is_that_of_the_oldest_rows(retention: Connection, seed: Seed) -> None:
    assert await read_lag(retention) == []
    await old(seed, days=40)
    policy = RetentionPolicy(deliveries=MONTH, events=MONTH)
    lags = {lag.kind: lag for lag in await plan_retention(retention, policy)}
    assert lags.keys() == {"deliveries", "events"}
    for lag in lags.values():
        assert 9.9 * 86_400 < lag.behind_seconds < 10.1 * 86_400
    for kind in (DELIVERIES, EVENTS):
        await pruned(retention, kind)
    assert max(lag.behind_seconds for lag in await read_lag(retention)) < 600


async def test_a_killed_batch_leaves_all(connect: Connect, seed: Seed) -> None:
    """And the next one does all of it."""
    await old(seed)
    await old(seed, SagaStatus.DEAD_LETTERED)
    before = await counts(seed)
    for kind in (DELIVERIES, DEAD, PAYLOADS, EVENTS):
        dying = await connect(Role.RETENTION)
        async with dying.transaction(force_rollback=True):
            await prune_batch(dying, Pruning(MONTH, kind=kind))
        assert await counts(seed) == before
        assert await seed.value("SELECT count(*) FROM events WHERE removed_at IS NOT NULL") == 0
    alive = await connect(Role.RETENTION)
    for kind in (DELIVERIES, DEAD, EVENTS):
        await pruned(alive, kind)
    assert await counts(seed) == (0, 0, 0, 0, 0)


async def test_a_batch_that_finds_another_at_work_changes_nothing(connect: Connect, seed: Seed) -> None:
    await old(seed)
    first, second = await connect(Role.RETENTION), await connect(Role.RETENTION)
    async with first.transaction():
        await prune_batch(first, Pruning(MONTH))
        blocked = [
            (await prune_batch(second, Pruning(MONTH, kind=kind))).is_blocked for kind in RetentionKind
        ]
    assert blocked == [True] * 4


async def test_a_resend_that_is_not_visible_yet_keeps_its_event(connect: Connect, seed: Seed) -> None:
    saga_id = await old(seed)
    resending, retention = await connect(Role.ADMIN), await connect(Role.RETENTION)
    async with resending.transaction():
        assert (await resend.resend_saga(resending, saga_id, tenant_id=None)).created
        assert (await prune_batch(retention, Pruning(MONTH))).is_blocked
    assert (await pruned(retention, DELIVERIES)).sagas == 1
    assert (await pruned(retention, EVENTS)).rows == 0
    assert await seed.findings() == set()


# What even the role that deletes may not.


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events",  # referred to
        "DELETE FROM dead_letters WHERE failed_at > now() - interval '1 day'",
        "UPDATE events SET payload = '{}'",
        "UPDATE events SET payload = NULL, removed_at = NULL",
        "UPDATE events SET payload = NULL, removed_at = now(), external_id = NULL, source = 'x'",
        "UPDATE dead_letters SET payload_snapshot = '{}'",
    ],
)
async def test_the_database_refuses_what_is_not_old_or_not_over(seed: Seed, statement: str) -> None:
    await old(seed)
    await seed.saga(SagaStatus.DEAD_LETTERED)
    with pytest.raises(psycopg.Error) as refused:
        await as_retention_role(seed, statement)
    assert refused.value.sqlstate == "HS001"


async def test_the_database_refuses_to_delete_a_young_event(seed: Seed) -> None:
    await seed.event("nobody.listens")
    await route_events(seed.connection)
    await seed.rewrite("DELETE FROM routing_decisions")
    for statement in ("DELETE FROM events", "UPDATE events SET payload = NULL, removed_at = now()"):
        with pytest.raises(psycopg.Error) as refused:
            await as_retention_role(seed, statement)
        assert refused.value.sqlstate == "HS001"


async def test_times_of_the_future_are_not_deleted(retention: Connection, seed: Seed) -> None:
    await old(seed, SagaStatus.DEAD_LETTERED)
    await seed.rewrite("UPDATE events SET created_at = %s", [datetime.now(UTC) + timedelta(days=365)])
    for kind in RetentionKind:
        assert (await pruned(retention, kind)).events == 0
    assert await seed.value("SELECT count(*) FROM dead_letters") == 1
