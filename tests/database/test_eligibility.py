"""An event belongs to the subscriptions that were eligible when it was accepted: by the order of what was committed,
whatever any clock says, and where that order cannot be told, towards delivering."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from psycopg import IsolationLevel

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.routing import Reason
from hooksaga.operations.audit import audit
from hooksaga.operations.explain import explain_event
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.seed import Seed
from tests.faults.sabotage import from_environment


@pytest.fixture
async def router(connect: Connect) -> Connection:
    """With the mistake of a broken product, where the suite asks for one."""
    from_environment()
    return await connect(Role.ROUTER)


@pytest.fixture
async def producer(connect: Connect) -> Connection:
    """A connection that inserts events in its own transactions."""
    return await connect(Role.OWNER)


async def insert(producer: Connection, event_type: str = "a") -> int:
    rows = await producer.execute(
        "INSERT INTO events (event_type, payload) VALUES (%s, '{}') RETURNING id", [event_type]
    )
    row = await rows.fetchone()
    assert row is not None
    return row[0]


async def matched(seed: Seed, event_id: int) -> list[int]:
    """The subscriptions for which the event's routing started a saga. The audit agrees, and so does `explain`."""
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_id])
    routing = await explain_event(seed.connection, webhook_id, tenant_id=None, default_attempt_limit=5)
    started = [one.subscription_id for one in routing.decisions if one.saga is not None]
    assert [one.subscription_id for one in routing.decisions if one.matched] == started
    assert {one.reason for one in routing.decisions if not one.matched} <= {Reason.ELIGIBLE_LATER}
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []
    return started


@pytest.mark.parametrize("hours", [-1, 1])
async def test_an_event_that_is_accepted_later_is_for_it_whatever_its_time(
    router: Connection, seed: Seed, hours: int
) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await seed.rewrite("UPDATE events SET created_at = created_at + make_interval(hours => %s)", [hours])
    await route_events(router)
    assert await matched(seed, event_id) == [subscription_id]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_an_event_that_was_accepted_before_is_not_whatever_its_time(
    router: Connection, seed: Seed, hours: int
) -> None:
    event_id = await seed.event("a")
    await seed.subscription("a")
    await seed.rewrite("UPDATE events SET created_at = created_at + make_interval(hours => %s)", [hours])
    await route_events(router)
    assert await matched(seed, event_id) == []


@asynccontextmanager
async def savepoints(connection: Connection) -> AsyncIterator[None]:
    """A transaction within another has a number of its own."""
    async with connection.transaction(), connection.transaction():
        yield


@pytest.mark.parametrize("nested", [False, True])
async def test_an_event_in_flight_has_a_lower_id_and_is_for_it(
    router: Connection, seed: Seed, producer: Connection, nested: bool
) -> None:
    """Its transaction began before the subscription became eligible, and commits after it."""
    async with savepoints(producer) if nested else producer.transaction():
        in_flight = await insert(producer)
        committed = await seed.event("a")
        subscription_id = await seed.subscription("a")
    assert in_flight < committed
    await route_events(router)
    assert await matched(seed, in_flight) == [subscription_id]
    assert await matched(seed, committed) == []


async def test_an_event_that_commits_beside_the_activation_is_for_it(
    router: Connection, seed: Seed, producer: Connection
) -> None:
    """Accepted after the change was made and before it was committed."""
    async with producer.transaction():
        subscription_id = await Seed(producer).subscription("a")
        event_id = await seed.event("a")
    await route_events(router)
    assert await matched(seed, event_id) == [subscription_id]


async def test_a_transaction_with_an_old_snapshot_errs_towards_delivering(
    router: Connection, seed: Seed, producer: Connection
) -> None:
    before = await seed.event("a")
    await producer.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    async with producer.transaction():
        await producer.execute("SELECT 1 FROM events")
        meanwhile = await seed.event("a")
        subscription_id = await Seed(producer).subscription("a")
    await route_events(router)
    assert await matched(seed, before) == []
    assert await matched(seed, meanwhile) == [subscription_id]


async def test_a_change_of_type_keeps_the_moment(router: Connection, seed: Seed) -> None:
    older = await seed.event("b")
    subscription_id = await seed.subscription("a")
    newer = await seed.event("b")
    await seed.connection.execute("UPDATE subscriptions SET event_types = '{b}'")
    await route_events(router)
    assert await matched(seed, newer) == [subscription_id]
    assert await matched(seed, older) == []


SEEN_IN_ANOTHER_CLUSTER = "9000000000000000000:9000000000000000000:"


async def test_after_a_restore_into_another_cluster_new_events_are_for_it(
    router: Connection, seed: Seed
) -> None:
    """There transaction ids begin anew, so that a snapshot of the old one seems to have seen each of them."""
    subscription_id = await seed.subscription("a")
    await seed.rewrite("UPDATE subscriptions SET eligible_snapshot = %s", [SEEN_IN_ANOTHER_CLUSTER])
    await seed.rewrite(
        "UPDATE subscription_history SET eligible_snapshot = %s, changed_in = %s,"
        " changed_by = '8999999999999999999' WHERE eligible_snapshot IS NOT NULL",
        [SEEN_IN_ANOTHER_CLUSTER] * 2,
    )
    event_id = await seed.event("a")
    await route_events(router)
    assert await matched(seed, event_id) == [subscription_id]


async def test_what_waited_in_the_dump_is_routed_as_there(
    router: Connection, seed: Seed, producer: Connection
) -> None:
    """The numbers of the event and of the subscription are of the same cluster, whichever it was."""
    async with producer.transaction():
        in_flight = await insert(producer)
        before = await seed.event("a")
        subscription_id = await seed.subscription("a")
    shift = "(accepted_by::text::bigint + 8000000000000000000)::text::xid8"
    await seed.rewrite(f"UPDATE events SET accepted_by = {shift}")  # pyright: ignore[reportArgumentType]
    for table in ("subscriptions", "subscription_history"):
        statement = (
            f"UPDATE {table} SET eligible_snapshot = (SELECT format('%%s:%%s:%%s', 8000000000000000000 +"
            " pg_snapshot_xmin(eligible_snapshot)::text::bigint, 8000000000000000000 +"
            " pg_snapshot_xmax(eligible_snapshot)::text::bigint, (SELECT string_agg((8000000000000000000 +"
            " x::text::bigint)::text, ',') FROM pg_snapshot_xip(eligible_snapshot) AS x))::pg_snapshot)"
            " WHERE eligible_snapshot IS NOT NULL"
        )
        await seed.rewrite(statement, ())  # pyright: ignore[reportArgumentType]
    await route_events(router)
    assert await matched(seed, in_flight) == [subscription_id]
    assert await matched(seed, before) == []
