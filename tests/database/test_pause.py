"""Pause and resume, and what ends without another attempt: discarded, expired, of an inactive subscription."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg import sql

from hooksaga.adapters.database import Role
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RowRefused
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.requeue import requeue_dead_letters
from hooksaga.operations.subscription_flow import pause_subscription, resume_subscription
from hooksaga.stages import end_waiting, start_attempts
from hooksaga.stages.end_waiting import Ended
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import POLICY, until_blocked
from tests.faults.promises import Promise


async def pause(one: Endpoint) -> None:
    await pause_subscription(one.seed.connection, one.id, tenant_id=None)


async def resume(one: Endpoint, backlog: Any = "deliver") -> None:
    await resume_subscription(one.seed.connection, one.id, backlog, tenant_id=None)


@pytest.mark.guarantee(Promise.ROOM, "a subscription is paused", "all delivered once resumed")
async def test_a_paused_subscription_keeps_what_comes_and_delivers_it_when_resumed(
    endpoint: EndpointOf,
) -> None:
    one = await endpoint(4)
    first = await one.events(1)
    assert await one.started() == first
    await pause(one)
    sagas = await one.events(6)
    assert await one.started() == []
    assert (await one.flow())["wake_at"] is None
    await one.answer(first, "http_503")
    await one.pass_time(7 * 86_400)
    assert await one.woken() == []
    assert await one.statuses() == ["PendingRetry", *["Pending"] * 6]
    await resume(one)
    woken = [move.saga_id for move in await one.woken()]
    assert len(woken) == int((await one.flow())["in_flight_limit"])
    assert set(woken) <= {*first, *sagas}


async def test_a_resume_may_discard_what_waits_and_not_what_comes_later(endpoint: EndpointOf) -> None:
    one = await endpoint()
    await pause(one)
    await one.events(3)
    await resume(one, "discard")
    later = await one.events(2)
    moves = (await one.start()).moves
    assert await one.ends() == ["discarded"] * 3
    assert [move.saga_id for move in moves if move.job_id is not None] == later
    assert (await one.flow())["discard_through"] == 0


async def test_a_large_backlog_is_discarded_in_batches(
    endpoint: EndpointOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_waiting, "BATCH", 8)
    one = await endpoint()
    await pause(one)
    await one.events(10)
    await resume(one, "discard")
    for left in (6, 2):
        assert (await one.start()).again == [one.id]
        assert await one.statuses() == ["DeadLettered"] * (10 - left) + ["Pending"] * left
    later = await one.events(1)
    assert (await one.start()).again == []
    assert await one.in_progress() == later
    assert await one.ends() == ["discarded"] * 10


async def test_what_was_discarded_can_be_requeued_by_name(endpoint: EndpointOf, connect: Connect) -> None:
    one = await endpoint()
    await pause(one)
    await one.events(1)
    await resume(one, "discard")
    await one.start()
    letter = await one.seed.value("SELECT id FROM dead_letters")
    await requeue_dead_letters(await connect(Role.ADMIN), [letter])
    assert len(await one.started()) == 1


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Awaitable[object]]) -> None:
    """Have something changed after the flow was read, and before anything is done."""

    async def end_after_change(*args: Any, **how: Any) -> Ended:
        await change()
        return await end_waiting.end_waiting(*args, **how)

    monkeypatch.setattr(start_attempts, "end_waiting", end_after_change)


async def test_what_changes_after_the_flow_was_read_is_left_for_the_next_look(
    endpoint: EndpointOf, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = await connect(Role.OWNER)
    one = await endpoint()
    await one.events(2)
    with monkeypatch.context() as patch:
        meanwhile(patch, lambda: pause_subscription(operator, one.id, tenant_id=None))
        started = await one.start()
    assert (started.moves, started.again) == ([], [one.id])
    assert await one.started() == []
    with monkeypatch.context() as patch:
        meanwhile(patch, lambda: resume_subscription(operator, one.id, "deliver", tenant_id=None))
        await one.start()
    assert len(await one.woken()) == 2


async def test_a_discarded_backlog_is_not_forgotten_while_another_session_holds_the_flow(
    endpoint: EndpointOf, connect: Connect
) -> None:
    one = await endpoint()
    await pause(one)
    await one.events(2)
    await resume(one, "discard")
    other = await connect(Role.ORCHESTRATOR)
    async with other.transaction():
        await other.execute("SELECT FROM subscription_flow FOR NO KEY UPDATE")
        started = await one.start()
    assert (started.moves, started.again) == ([], [one.id])
    await one.start()
    assert await one.ends() == ["discarded"] * 2


async def test_what_another_orchestrator_has_started_since_the_statement_began_is_counted(
    endpoint: EndpointOf, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is younger than its snapshot, and so must its count be."""
    one = await endpoint(max_in_flight=3)
    await one.start()  # the look that it was made with is done: the version stays as it is
    await one.events(9)
    version = (await one.flow())["version"]
    queries, wanted = load_queries("orchestrate"), "JOIN subscription_flow f ON"
    waits = f"CROSS JOIN (SELECT pg_advisory_xact_lock(7)) AS waits {wanted}"
    assert queries["start_due"].count(wanted) == 1
    late = {**queries, "start_due": queries["start_due"].replace(wanted, waits)}
    other = await connect(Role.ORCHESTRATOR)
    async with one.seed.connection.transaction():
        await one.seed.connection.execute("SELECT pg_advisory_xact_lock(7)")
        with monkeypatch.context() as patch:
            patch.setattr(start_attempts, "load_queries", lambda _stage: late)
            starting = asyncio.create_task(one.start())
            await until_blocked(await connect(Role.OWNER), one.orchestrator)
        assert len((await one.start(other)).moves) == 3
        assert (await one.flow())["version"] == version
    assert (await starting).moves == []
    assert len(await one.in_progress()) == 3


async def test_what_was_ended_before_a_saga_is_refused_is_told(endpoint: EndpointOf) -> None:
    one, other = await endpoint(), await endpoint()
    await pause(one)
    discarded = await one.events(2)
    await resume(one, "discard")
    (refused,) = await other.events(1)
    broken = "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken CHECK (saga_id <> {}) NOT VALID"
    await one.seed.connection.execute(sql.SQL(broken).format(refused))
    with pytest.raises(RowRefused, match="broken") as told:
        await one.start(subscription_ids=[one.id, other.id])
    assert {move.saga_id: move.status for move in told.value.done} == dict.fromkeys(
        discarded, SagaStatus.DEAD_LETTERED
    )


async def test_a_retry_that_comes_while_a_start_looks_is_not_forgotten(
    endpoint: EndpointOf, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer about the payload changes nothing of the flow but when to look again."""
    one = await endpoint()
    (saga,) = await one.events(1)
    assert await one.started() == [saga]
    await one.seed.connection.execute("UPDATE subscription_flow SET wake_at = now() - interval '1 second'")
    await one.seed.finish(await one.seed.active_job(saga), "http_422")
    other = await connect(Role.ORCHESTRATOR)
    with monkeypatch.context() as patch:
        meanwhile(patch, lambda: orchestrate.apply_results(other, POLICY))
        started = await one.start()
    assert started.again == [one.id]
    await one.start()
    assert (await one.flow())["wake_at"] is not None


async def test_what_is_to_be_discarded_waits_for_that_while_its_subscription_is_inactive(
    endpoint: EndpointOf,
) -> None:
    one = await endpoint()
    (retry,) = await one.events(1)
    assert await one.started() == [retry]
    await one.answer([retry], "http_503")
    await pause(one)
    await one.events(1)
    await one.seed.connection.execute("UPDATE subscriptions SET active = false")
    await resume(one, "discard")
    await one.start()
    assert await one.ends() == ["subscription_inactive"]
    await one.seed.connection.execute("UPDATE subscriptions SET active = true")
    await one.start()
    assert sorted(await one.ends()) == ["discarded", "subscription_inactive"]


# Endings without an attempt


async def test_what_waited_for_too_long_expires_and_a_pause_is_not_counted(endpoint: EndpointOf) -> None:
    one = await endpoint(max_wait_seconds=3600)
    await one.events(2)
    await pause(one)
    await one.pass_time(2 * 3600)
    await one.start()
    assert await one.ends() == []
    await resume(one)
    await one.seed.grow(one.id, 1)
    (first,) = await one.started()
    assert await one.ends() == []
    await one.pass_time(3700)
    await one.start()
    assert await one.ends() == ["expired"]
    assert await one.in_progress() == [first]


async def test_an_inactive_subscription_ends_what_waits_whatever_else_closes_it(endpoint: EndpointOf) -> None:
    one = await endpoint()
    await one.events(3)
    await pause(one)
    await one.seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [one.id])
    assert {move.status for move in await one.woken()} == {SagaStatus.DEAD_LETTERED}
    assert await one.ends() == ["subscription_inactive"] * 3
    await one.pass_time(2)
    assert await one.woken() == []
    assert (await one.flow())["wake_at"] is None


async def test_the_walk_looks_at_what_may_have_room(endpoint: EndpointOf) -> None:
    """What pause, Retry-After or an open breaker closes is woken when that ends."""
    open_one, paused, failing, inactive = [await endpoint() for _ in range(4)]
    for one in (open_one, paused, failing, inactive):
        await one.events(1)
    await paused.seed.rewrite(
        "UPDATE subscriptions SET paused_at = now() WHERE id = %(id)s", {"id": paused.id}
    )
    await failing.seed.rewrite(
        "UPDATE subscription_flow SET breaker_opened_at = now(), probe_at = now() + interval '1 minute',"
        " wake_at = now() + interval '1 minute' WHERE subscription_id = %(id)s",
        {"id": failing.id},
    )
    await inactive.seed.rewrite(
        "UPDATE subscriptions SET paused_at = now(), active = false WHERE id = %(id)s", {"id": inactive.id}
    )
    looked_at = await orchestrate.waiting_subscriptions(open_one.orchestrator)
    assert looked_at == ([open_one.id, inactive.id], None)
    assert await orchestrate.waiting_subscriptions(open_one.orchestrator, limit=2) == (
        [open_one.id],
        paused.id,
    )
    await failing.pass_time(61)
    assert (await orchestrate.waiting_subscriptions(open_one.orchestrator, after=paused.id))[0][
        0
    ] == failing.id
