"""Each opening and closing of a circuit breaker creates one event, with several monitors and after crashes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.operations import breaker_events, operational_events
from hooksaga.operations.breaker_events import tell_breakers
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import POLICY, Seed

OPENED, CLOSED = "hooksaga.subscription.breaker_opened", "hooksaga.subscription.breaker_closed"
ONE_PROBE = POLICY.probe_seconds + 0.5


BrokenOf = Callable[..., Awaitable[Endpoint]]


@pytest.fixture
async def broken(endpoint: EndpointOf, seed: Seed) -> BrokenOf:
    """Makes endpoints whose breaker has just opened, in a tenant that hears of it."""

    async def broken(tenant_id: str = "acme", *, heard: bool = True, **fields: Any) -> Endpoint:
        if heard and not await seed.rows("SELECT FROM subscriptions WHERE %s = ANY (event_types)", [OPENED]):
            for event_type in (OPENED, CLOSED):
                await seed.subscription(event_type, tenant_id=tenant_id)
        one = await endpoint(1000, tenant_id=tenant_id, **fields)
        await fail(one)
        return one

    return broken


async def fail(one: Endpoint, error_code: str = "http_503") -> None:
    sagas = await one.events(POLICY.breaker_failures)
    assert await one.started() == sagas
    await one.answer(sagas, error_code)
    assert (await one.flow())["breaker_opened_at"] is not None


async def close(one: Endpoint) -> None:
    """A probe succeeds."""
    await one.events(1)
    await one.pass_time(ONE_PROBE)
    await one.answer(await one.started())
    assert (await one.flow())["breaker_opened_at"] is None


async def told(seed: Seed) -> list[dict[str, Any]]:
    rows = await seed.rows(
        "SELECT tenant_id, event_type, payload FROM events WHERE source = 'hooksaga' ORDER BY id"
    )
    return [{**row["payload"], "tenant_id": row["tenant_id"]} for row in rows]


async def types_told(seed: Seed, one: Endpoint) -> list[str]:
    mine = [event for event in await told(seed) if event["data"]["subscription_id"] == one.id]
    return [event["type"].removeprefix("hooksaga.subscription.breaker_") for event in mine]


async def moment(seed: Seed, one: Endpoint, column: str, table: str = "subscription_flow") -> str:
    query = sql.SQL(
        "SELECT to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM {} WHERE {} = %s"
    )
    cursor = await seed.connection.execute(
        query.format(*map(sql.Identifier, (column, table, "subscription_id"))), [one.id]
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0]


async def test_an_opening_and_its_end_are_told_once_each(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    one = await broken(callback_url="https://shop.example/secret?token=1")
    (change,) = (await tell_breakers(monitor)).changes
    assert (change.subscription_id, change.tenant_id, change.closed_at) == (one.id, "acme", None)
    assert (await tell_breakers(monitor)).changes == []
    opened_at = await moment(seed, one, "breaker_opened_at")
    (event,) = await told(seed)
    event_type = await seed.value("SELECT event_types[1] FROM subscriptions WHERE id = %s", [one.id])
    about = {"subscription_id": one.id, "event_types": [event_type], "callback_host": "shop.example"}
    failures = {"error_code": "http_503", "consecutive_failures": POLICY.breaker_failures}
    assert event == {
        "type": OPENED,
        "timestamp": opened_at,
        "data": {**about, **failures, "opened_at": opened_at},
        "tenant_id": "acme",
    }
    await close(one)
    opened_at = await moment(seed, one, "breaker_told_at", "subscription_health")  # time has passed
    (change,) = (await tell_breakers(monitor)).changes
    assert change.closed_at is not None
    assert (await tell_breakers(monitor)).changes == []
    ended = await seed.value(
        "SELECT finished_at FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Completed'",
        [one.id],
    )
    assert change.closed_at == ended
    _, event = await told(seed)
    assert (event["type"], event["timestamp"]) == (CLOSED, event["data"]["closed_at"])
    assert event["data"].keys() == {*about, "opened_at", "closed_at"}
    assert event["data"]["opened_at"] == opened_at < event["data"]["closed_at"]
    await fail(one)
    await tell_breakers(monitor)
    assert await types_told(seed, one) == ["opened", "closed", "opened"]


async def test_they_reach_the_subscribers_of_the_tenant(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    elsewhere = await seed.subscription(OPENED, tenant_id="other")
    watcher = await seed.subscription(OPENED, tenant_id="acme")
    await broken()
    done = await tell_breakers(monitor)
    routed = await route_events(seed.connection, event_ids=[event.id for event in done.events])
    takers = await seed.rows(
        "SELECT subscription_id FROM webhook_delivery_sagas WHERE id = ANY (%s)", [routed.saga_ids]
    )
    assert [row["subscription_id"] for row in takers] == [watcher] != [elsewhere]


async def test_what_happened_between_two_looks_is_told_as_far_as_it_matters(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    passing, again = await broken(), await broken()
    await close(passing)
    await tell_breakers(monitor)
    await close(again)
    await fail(again)
    await tell_breakers(monitor)
    assert await types_told(seed, passing) == []
    assert await types_told(seed, again) == ["opened", "closed", "opened"]


@pytest.mark.parametrize(
    "change",
    [
        "circuit_breaker = false",
        "pending_callback_url = NULL, callback_url = pending_callback_url",
        "active = true",
    ],
)
async def test_an_end_that_is_no_success_is_told_too(
    monitor: Connection, broken: BrokenOf, seed: Seed, change: str
) -> None:
    one = await broken()
    await tell_breakers(monitor)
    update = sql.SQL("UPDATE subscriptions SET {} WHERE id = %s")
    before = "pending_callback_url = 'https://new.example/hook', active = " + (
        "false" if "active" in change else "true"
    )
    await seed.connection.execute(update.format(sql.SQL(before)), [one.id])  # pyright: ignore[reportArgumentType]
    assert (await tell_breakers(monitor)).changes == []
    await seed.connection.execute(update.format(sql.SQL(change)), [one.id])  # pyright: ignore[reportArgumentType]
    (told_of,) = (await tell_breakers(monitor)).changes
    age = await seed.value("SELECT extract(epoch FROM now() - %s)", [told_of.closed_at])
    assert 0 <= age < 10
    assert await types_told(seed, one) == ["opened", "closed"]


async def test_an_inactive_subscription_and_one_to_these_events_are_not_told(
    monitor: Connection, broken: BrokenOf, endpoint: EndpointOf, seed: Seed
) -> None:
    one, other = (
        await broken(),
        await endpoint(tenant_id="acme", event_type="hooksaga.delivery.dead_lettered"),
    )
    await seed.connection.execute(
        "UPDATE subscription_flow SET breaker_opened_at = now(), probe_at = now() WHERE subscription_id = %s",
        [other.id],
    )
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [one.id])
    assert (await tell_breakers(monitor)).changes == []
    await seed.connection.execute("UPDATE subscriptions SET active = true WHERE id = %s", [one.id])
    await fail(one)
    assert [change.subscription_id for change in (await tell_breakers(monitor)).changes] == [one.id]
    assert await types_told(seed, other) == []


async def test_an_inactive_one_that_was_told_is_told_to_have_ended_and_no_more(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    """Attempts in flight go on: they close and open the breaker again."""
    one = await broken()
    await tell_breakers(monitor)
    await close(one)
    await fail(one)
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [one.id])
    await tell_breakers(monitor)
    assert await types_told(seed, one) == ["opened", "closed"]
    assert (await tell_breakers(monitor)).looked_at == 0


async def test_where_nobody_subscribes_nothing_is_written(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    await seed.subscription(OPENED, tenant_id="other")
    await seed.subscription(OPENED, tenant_id="acme", verified=False)
    one = await broken(heard=False)
    (change,) = (await tell_breakers(monitor)).changes
    assert change.consecutive_failures == POLICY.breaker_failures
    await seed.subscription(CLOSED, tenant_id="acme")
    assert (await tell_breakers(monitor)).changes == []
    await close(one)
    await tell_breakers(monitor)
    assert await types_told(seed, one) == ["closed"]


async def test_the_last_error_is_that_of_the_endpoint(
    monitor: Connection, broken: BrokenOf, endpoint: EndpointOf, seed: Seed
) -> None:
    await broken()
    one = await endpoint(1000, tenant_id="acme")
    late = await one.events(2)
    await one.start()
    await fail(one, "tls_error")
    for saga_id, error_code in zip(late, ("http_422", "lease_expired"), strict=True):
        await one.answer([saga_id], error_code)
    changes = (await tell_breakers(monitor)).changes
    assert [change.error_code for change in changes if change.subscription_id == one.id] == ["tls_error"]


async def test_monitors_at_once_tell_each_once(connect: Connect, broken: BrokenOf, seed: Seed) -> None:
    endpoints = [await broken() for _ in range(8)]
    crowd = [await connect(Role.HEALTH_MONITOR) for _ in range(4)]

    async def look(connection: Connection) -> list[int]:
        done = [await tell_breakers(connection, limit=3) for _ in range(6)]
        return [change.subscription_id for one in done for change in one.changes]

    for count in (1, 2):
        found = await asyncio.gather(*map(look, crowd))
        assert sorted(one for some in found for one in some) == sorted(one.id for one in endpoints)
        assert len(await told(seed)) == count * len(endpoints)
        for one in endpoints:
            await close(one)


async def test_one_whose_health_is_locked_waits_and_the_others_do_not(
    connect: Connect, monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    held, free = await broken(), await broken()
    somebody = await connect(Role.OWNER)
    await monitor.execute("SET lock_timeout = '500ms'")
    async with somebody.transaction():
        await somebody.execute(
            "SELECT FROM subscription_health WHERE subscription_id = %s FOR UPDATE", [held.id]
        )
        assert [one.subscription_id for one in (await tell_breakers(monitor)).changes] == [free.id]
    assert [one.subscription_id for one in (await tell_breakers(monitor)).changes] == [held.id]


async def test_one_that_the_database_rejects_is_reported_and_holds_up_nobody(
    monitor: Connection, broken: BrokenOf, seed: Seed
) -> None:
    endpoints = [await broken() for _ in range(3)]
    sick = endpoints[1].id
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE subscription_health ADD CONSTRAINT broken"
            " CHECK (breaker_told_at IS NULL OR subscription_id <> {})"
        ).format(sick)
    )
    refused: list[int | None] = []
    done = await tell_breakers(monitor, on_refusal=lambda row: refused.append(row.subscription_id))
    assert [one.subscription_id for one in done.changes] == [endpoints[0].id, endpoints[2].id]
    assert (refused, len(done.events)) == ([sick], 2)
    await seed.connection.execute("ALTER TABLE subscription_health DROP CONSTRAINT broken")
    assert [one.subscription_id for one in (await tell_breakers(monitor)).changes] == [sick]
    assert len(await told(seed)) == 3


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("statements", [1, 2, 3])
async def test_a_monitor_that_dies_between_two_statements_tells_once_all_the_same(
    connect: Connect,
    broken: BrokenOf,
    seed: Seed,
    monkeypatch: pytest.MonkeyPatch,
    statements: int,
    closing: bool,
) -> None:
    one = await broken()
    if closing:
        await tell_breakers(await connect(Role.HEALTH_MONITOR))
        await close(one)
    before = len(await told(seed))
    dying = await connect(Role.HEALTH_MONITOR)
    run = 0

    def then_die(fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def fetch_and_die(connection: Connection, *statement: Any) -> Any:
            nonlocal run
            rows = await fetch(connection, *statement)
            run += 1
            if run == statements:
                await seed.connection.execute(
                    "SELECT pg_terminate_backend(%s, 5000)", [dying.info.backend_pid]
                )
            return rows

        return fetch_and_die

    with monkeypatch.context() as patch:
        patch.setattr(breaker_events, "fetch_rows", then_die(breaker_events.fetch_rows))
        patch.setattr(breaker_events, "fetch_values", then_die(breaker_events.fetch_values))
        patch.setattr(operational_events, "fetch_rows", then_die(operational_events.fetch_rows))
        with pytest.raises((psycopg.OperationalError, DatabaseUnavailable)):
            await tell_breakers(dying)
    assert (run, len(await told(seed))) == (statements, before)
    for _ in range(2):
        await tell_breakers(await connect(Role.HEALTH_MONITOR))
    assert len(await told(seed)) == before + 1
