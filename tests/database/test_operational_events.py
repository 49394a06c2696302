"""Operational events: told once, to who asked for them, by nobody but the monitor, and never of themselves."""

import asyncio
from typing import LiteralString

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.endpoint_health import HealthPolicy
from hooksaga.core.event_input import EventDraft
from hooksaga.operations import requeue
from hooksaga.operations.operational_events import store_dead_letter_events
from hooksaga.operations.subscription_health import Missed, read_missed, show_health
from hooksaga.operations.watch_endpoints import disable_gone
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.passing_time import pass_time
from tests.database.seed import POLICY, Seed

DEAD_LETTERED = "hooksaga.delivery.dead_lettered"
WAITING: LiteralString = "SELECT count(*) FROM operational_outbox"
TOLD: LiteralString = (
    "SELECT tenant_id, payload FROM events WHERE event_type = 'hooksaga.delivery.dead_lettered'"
)


async def test_a_dead_letter_is_told_without_its_payload(monitor: Connection, seed: Seed) -> None:
    await seed.subscription(DEAD_LETTERED, tenant_id="acme")
    dying = await seed.subscription("order.paid", "https://shop.example/hook?token=secret", tenant_id="acme")
    letter = await seed.dead_letter(dying, '{"card": "secret"}')
    assert len(await store_dead_letter_events(monitor)) == 1
    (event,) = await seed.rows(TOLD)
    row = await seed.row(
        "SELECT d.*, e.webhook_id FROM dead_letters d JOIN events e ON e.id = d.event_id WHERE d.id = %s",
        [letter],
    )
    data = event["payload"]["data"]
    assert data.pop("failed_at")[:10] == row["failed_at"].date().isoformat()
    assert data == {
        "dead_letter_id": letter,
        "saga_id": row["saga_id"],
        "event_id": f"evt_{row['webhook_id'].hex}",
        "event_type": "order.paid",
        "subscription_id": dying,
        "callback_host": "shop.example",
        "error_code": "http_503",
        "attempts": 1,
    }
    assert event["tenant_id"] == "acme"
    assert "secret" not in str(event["payload"])
    assert await store_dead_letter_events(monitor) == []
    assert await seed.value(WAITING) == 0


async def test_where_nobody_subscribes_nothing_is_written(monitor: Connection, seed: Seed) -> None:
    await seed.subscription(DEAD_LETTERED, tenant_id="other")
    await seed.subscription(DEAD_LETTERED, verified=False)
    await seed.dead_letter()
    assert await seed.value(WAITING) == 0
    assert await store_dead_letter_events(monitor) == []


async def test_a_dead_operational_event_makes_no_other(monitor: Connection, seed: Seed) -> None:
    failing = await seed.subscription(DEAD_LETTERED, max_retry_limit=1)
    await seed.dead_letter()
    (told,) = await store_dead_letter_events(monitor)
    routed = await route_events(seed.connection, event_ids=[told.id])
    (saga_id,) = routed.saga_ids
    await seed.finish(await seed.start(saga_id), "http_503")
    await orchestrate.apply_results(seed.connection, POLICY)
    (dead,) = await seed.rows("SELECT id FROM dead_letters WHERE subscription_id = %s", [failing])
    assert dead
    assert await seed.value(WAITING) == 0
    assert await store_dead_letter_events(monitor) == []


async def test_tellers_at_once_tell_each_once(connect: Connect, seed: Seed) -> None:
    await seed.subscription(DEAD_LETTERED)
    for _ in range(20):
        await seed.dead_letter()
    crowd = [await connect(Role.HEALTH_MONITOR) for _ in range(4)]

    async def drain(connection: Connection) -> int:
        return sum([len(await store_dead_letter_events(connection, limit=3)) for _ in range(10)])

    assert sum(await asyncio.gather(*map(drain, crowd))) == 20
    assert len(await seed.rows(TOLD)) == 20


async def test_what_was_told_before_the_end_of_the_waiting_is_not_told_again(
    monitor: Connection, seed: Seed
) -> None:
    await seed.subscription(DEAD_LETTERED)
    letter = await seed.dead_letter()
    await store_dead_letter_events(monitor)
    await seed.rewrite("INSERT INTO operational_outbox (dead_letter_id) VALUES (%s)", [letter])
    assert await store_dead_letter_events(monitor) == []
    assert (len(await seed.rows(TOLD)), await seed.value(WAITING)) == (1, 0)


@pytest.mark.parametrize(
    ("role", "event_type", "source"),
    [
        (Role.OWNER, "hooksaga.subscription.disabled", ""),
        (Role.OWNER, "order.paid", "hooksaga"),
        (Role.INGEST, "hooksaga.anything", "hooksaga"),
        (Role.HEALTH_MONITOR, "order.paid", "hooksaga"),
        (Role.HEALTH_MONITOR, "hooksaga.subscription.disabled", ""),
    ],
)
async def test_nobody_speaks_in_anothers_name(
    connect: Connect, role: Role, event_type: str, source: str
) -> None:
    connection = await connect(role)
    statement = "INSERT INTO events (tenant_id, event_type, source, payload) VALUES ('a', %s, %s, '{}')"
    with pytest.raises(errors.Error) as refused:
        await connection.execute(statement, [event_type, source])
    assert refused.value.sqlstate == "HS001"


async def disabled(
    seed: Seed, monitor: Connection, event_type: str | None = None, tenant_id: str = "default"
) -> int:
    """A subscription that answered 410 an hour ago."""
    subscription_id = await seed.subscription(event_type, tenant_id=tenant_id)
    await seed.finish(await seed.job(subscription_id), "http_410")
    await disable_gone(monitor, HealthPolicy())
    await route_events(seed.connection)
    await pass_time(seed, hours=1)
    return subscription_id


async def missed(connect: Connect, subscription_id: int, *, most: int = 100) -> Missed | None:
    return await read_missed(await connect(Role.SUBSCRIPTIONS), subscription_id, tenant_id=None, most=most)


async def test_what_a_disabled_subscription_missed_is_counted(
    connect: Connect, monitor: Connection, seed: Seed
) -> None:
    subscription_id = await disabled(seed, monitor, event_type="order.paid", tenant_id="acme")
    await seed.accept(*[EventDraft("order.paid", "{}", "acme")] * 4, EventDraft("order.paid", "{}", "other"))
    await seed.accept(EventDraft("order.sent", "{}", "acme"))
    found = await missed(connect, subscription_id)
    assert found is not None
    assert (found.dead_letters, found.events, found.at_least) == (0, 4, False)
    assert await missed(connect, await seed.subscription()) is None
    assert await read_missed(await connect(Role.SUBSCRIPTIONS), subscription_id, tenant_id="other") is None


async def test_dead_letters_since_the_failures_began_are_missed_unless_they_were_requeued(
    connect: Connect, monitor: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription()
    await seed.dead_letter(subscription_id)
    await pass_time(seed, days=1)
    letters = [await seed.dead_letter(subscription_id) for _ in range(3)]
    await requeue.requeue_one(seed.connection, letters[0])
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [subscription_id])
    await seed.connection.execute(
        "UPDATE subscription_health SET disabled_at = now(), disabled_reason = 'failing',"
        " disabled_failing_since = now() - interval '1 hour' WHERE subscription_id = %s",
        [subscription_id],
    )
    found = await missed(connect, subscription_id)
    assert found is not None
    assert (found.dead_letters, found.at_least) == (2, False)
    bounded = await missed(connect, subscription_id, most=2)
    assert bounded is not None
    assert (bounded.dead_letters, bounded.at_least) == (2, True)


async def test_counting_what_was_missed_is_bounded(connect: Connect, monitor: Connection, seed: Seed) -> None:
    subscription_id = await disabled(seed, monitor, event_type="order.paid")
    await seed.accept(*[EventDraft("order.paid", "{}")] * 30)
    found = await missed(connect, subscription_id, most=10)
    assert found is not None
    assert (found.events, found.at_least) == (10, True)


async def test_health_is_shown_to_its_own_tenant(connect: Connect, monitor: Connection, seed: Seed) -> None:
    subscription_id = await disabled(seed, monitor, tenant_id="acme")
    reader = await connect(Role.SUBSCRIPTIONS)
    shown = await show_health(reader, subscription_id, tenant_id="acme")
    assert (shown.disabled_reason, shown.eligible) == ("gone", False)
    with pytest.raises(Exception, match="no subscription"):
        await show_health(reader, subscription_id, tenant_id="other")
