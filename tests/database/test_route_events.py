"""Events to sagas: one for each subscription that should have it, never two, whoever routes."""

import asyncio

import pytest
from psycopg import errors, sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_input import EventDraft
from hooksaga.stages.route_events import Routed, outbox_age_seconds, route_events
from tests.conftest import Connect
from tests.database.seed import Seed
from tests.faults.promises import Promise


async def receivers(seed: Seed, event_id: int) -> list[int]:
    rows = await seed.rows(
        "SELECT subscription_id FROM webhook_delivery_sagas WHERE event_id = %s ORDER BY subscription_id",
        [event_id],
    )
    return [row["subscription_id"] for row in rows]


async def test_every_matching_subscription_gets_one_pending_saga(router: Connection, seed: Seed) -> None:
    wanted = [await seed.subscription("a") for _ in range(3)]
    event_id = await seed.event("a")
    routed = await route_events(router)
    assert (routed.event_ids, len(routed.saga_ids)) == ([event_id], 3)
    assert await receivers(seed, event_id) == wanted
    sagas = await seed.rows(
        "SELECT DISTINCT status::text, attempt_count, requeued_from, next_attempt_at <= now() AS due"
        " FROM webhook_delivery_sagas"
    )
    assert sagas == [{"status": "Pending", "attempt_count": 0, "requeued_from": None, "due": True}]


async def test_type_and_tenant_match_exactly(router: Connection, seed: Seed) -> None:
    right = await seed.subscription("a.b", tenant_id="acme")
    for event_type, tenant_id in [("a.B", "acme"), ("a", "acme"), ("a.b", "Acme"), ("a.b", "default")]:
        await seed.subscription(event_type, tenant_id=tenant_id)
    event_id = await seed.event("a.b", tenant_id="acme")
    await route_events(router)
    assert await receivers(seed, event_id) == [right]


def ids(routed: Routed) -> tuple[list[int], list[int]]:
    return routed.event_ids, routed.saga_ids


@pytest.mark.parametrize(
    "unfit",
    ["active = false", "verified = false", "deleted_at = now()", "active = false, verified = false"],
)
async def test_a_subscription_that_takes_nothing_gets_no_saga(
    router: Connection, seed: Seed, unfit: str
) -> None:
    await seed.subscription("a")
    await seed.connection.execute(f"UPDATE subscriptions SET {unfit}".encode())
    event_id = await seed.event("a")
    assert ids(await route_events(router)) == ([event_id], [])
    assert await seed.value("SELECT count(*) FROM routing_outbox") == 0


async def test_events_from_before_a_subscription_could_take_them_are_not_for_it(
    router: Connection, seed: Seed
) -> None:
    older = await seed.event("a")
    subscription_id = await seed.subscription("a")
    newer = await seed.event("a")
    await route_events(router)
    assert (await receivers(seed, older), await receivers(seed, newer)) == ([], [subscription_id])


async def test_a_pause_starts_a_new_age(router: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription("a")
    during = await seed.event("a")
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    await seed.connection.execute("UPDATE subscriptions SET active = true")
    after = await seed.event("a")
    await route_events(router)
    assert (await receivers(seed, during), await receivers(seed, after)) == ([], [subscription_id])


async def test_a_change_that_is_no_pause_loses_no_event(router: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await seed.connection.execute("UPDATE subscriptions SET description = 'changed', max_retry_limit = 9")
    await route_events(router)
    assert await receivers(seed, event_id) == [subscription_id]


async def test_routing_an_event_again_makes_no_second_saga(router: Connection, seed: Seed) -> None:
    event_id = await seed.event_for(await seed.subscription())
    await route_events(router)
    assert await route_events(router, event_ids=[event_id]) == Routed()
    await seed.put_back(event_id)
    assert ids(await route_events(router, event_ids=[event_id])) == ([event_id], [])
    assert len(await receivers(seed, event_id)) == 1


async def test_routing_again_adds_those_who_were_missing(router: Connection, seed: Seed) -> None:
    first = await seed.subscription("a")
    event_id = await seed.event("a")
    await route_events(router)
    second = await seed.subscription("a")
    await seed.rewrite("UPDATE subscriptions SET eligible_after_event = 0")
    await seed.put_back(event_id)
    routed = await route_events(router)
    assert len(routed.saga_ids) == 1
    assert await receivers(seed, event_id) == [first, second]


async def test_routers_at_once_route_each_event_once(connect: Connect, seed: Seed) -> None:
    for _ in range(3):
        await seed.subscription("a")
    await seed.accept(*[EventDraft("a", "{}")] * 400)
    crowd = [await connect(Role.ROUTER) for _ in range(6)]

    async def drain(connection: Connection) -> Routed:
        mine = Routed()
        while (batch := await route_events(connection, max_events=25)).event_ids:
            mine.events.extend(batch.events)
        return mine

    routed = await asyncio.gather(*map(drain, crowd))
    events = [event_id for some in routed for event_id in some.event_ids]
    sagas = [saga_id for some in routed for saga_id in some.saga_ids]
    assert (len(events), len(set(events)), len(sagas), len(set(sagas))) == (400, 400, 1200, 1200)
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 1200


async def test_an_event_that_another_router_holds_is_left_to_it(connect: Connect, seed: Seed) -> None:
    first, second = await connect(Role.ROUTER), await connect(Role.ROUTER)
    held, free = [await seed.event("a") for _ in range(2)]
    async with first.transaction():
        assert (await route_events(first, event_ids=[held])).event_ids == [held]
        assert (await route_events(second)).event_ids == [free]


async def test_a_router_that_dies_in_the_middle_leaves_the_event_waiting(
    router: Connection, connect: Connect, seed: Seed
) -> None:
    event_id = await seed.event_for(await seed.subscription())
    await router.execute("BEGIN")
    assert len((await route_events(router)).saga_ids) == 1
    await seed.connection.execute("SELECT pg_terminate_backend(%s)", [router.info.backend_pid])
    with pytest.raises(errors.OperationalError):
        await router.execute("COMMIT")
    assert await receivers(seed, event_id) == []
    assert (await route_events(await connect(Role.ROUTER))).event_ids == [event_id]
    assert len(await receivers(seed, event_id)) == 1


@pytest.mark.guarantee(Promise.ARRIVES, "the router, amid the parts of an event with very many subscribers")
async def test_a_router_that_dies_amid_the_parts_leaves_the_rest_waiting(
    router: Connection, connect: Connect, seed: Seed
) -> None:
    wanted = [await seed.subscription("wide") for _ in range(5)]
    event_id = await seed.event("wide")
    await route_events(router, wide_from=2, part_size=2)
    await router.execute("BEGIN")
    assert len((await route_events(router, wide_from=2, part_size=2)).saga_ids) == 2
    await seed.connection.execute("SELECT pg_terminate_backend(%s)", [router.info.backend_pid])
    with pytest.raises(errors.OperationalError):
        await router.execute("COMMIT")
    assert await receivers(seed, event_id) == wanted[:2]
    assert len((await route_events(await connect(Role.ROUTER))).saga_ids) == 3
    assert await receivers(seed, event_id) == wanted


async def test_the_oldest_events_go_first(router: Connection, seed: Seed) -> None:
    events = [await seed.event("a") for _ in range(5)]
    assert (await route_events(router, max_events=2)).event_ids == events[:2]
    assert (await route_events(router, max_events=2)).event_ids == events[2:4]


async def test_only_the_named_events_are_routed(router: Connection, seed: Seed) -> None:
    events = [await seed.event("a") for _ in range(3)]
    assert (await route_events(router, event_ids=[events[1], 10**12])).event_ids == [events[1]]
    assert await route_events(router, event_ids=[]) == Routed()


async def test_a_batch_ends_where_its_fan_out_would_pass_the_bound(router: Connection, seed: Seed) -> None:
    for _ in range(10):
        await seed.subscription("wide")
    await seed.subscription("narrow")
    events = [await seed.event(kind) for kind in ("wide", "wide", "narrow", "wide")]
    batches: list[tuple[list[int], int]] = []
    while (routed := await route_events(router, max_sagas=20)).event_ids:
        batches.append((sorted(routed.event_ids), len(routed.saga_ids)))
    assert batches == [(events[:3], 21), (events[3:], 10)]


async def test_the_oldest_is_in_each_batch_and_then_those_with_the_fewest(
    router: Connection, seed: Seed
) -> None:
    for _ in range(9):
        await seed.subscription("wide")
    await seed.subscription("narrow")
    first, second, *narrow = [await seed.event(kind) for kind in ("wide", "wide", "narrow", "narrow")]
    routed = await route_events(router, max_sagas=10, wide_from=9, part_size=9)
    assert [(event.id, len(event.saga_ids), event.more) for event in routed.events] == [
        (first, 9, True),
        *((event_id, 1, True) for event_id in narrow),
    ]
    assert ids(await route_events(router, max_sagas=10, wide_from=9, part_size=9))[0] == [second]


async def test_an_event_with_more_subscriptions_than_a_part_is_routed_in_parts(
    router: Connection, seed: Seed
) -> None:
    wanted = [await seed.subscription("wide") for _ in range(10)]
    wide, narrow = await seed.event("wide"), await seed.event("narrow")
    batches = [(await route_events(router, wide_from=4, part_size=4)).events for _ in range(4)]
    assert [
        [(event.id, len(event.saga_ids), event.whole, event.more) for event in batch] for batch in batches
    ] == [
        [(wide, 4, False, False), (narrow, 0, True, False)],
        [(wide, 4, False, False)],
        [(wide, 2, True, False)],
        [],
    ]
    assert await receivers(seed, wide) == wanted
    assert await seed.value("SELECT count(*) FROM routing_outbox") == 0


async def test_a_wide_event_that_was_begun_goes_on_only_when_it_may(router: Connection, seed: Seed) -> None:
    for _ in range(10):
        await seed.subscription("wide")
    wide = await seed.event("wide")

    async def started(part_size: int, *, go_on: bool) -> list[int]:
        routed = await route_events(router, wide_from=9, part_size=part_size, go_on=go_on)
        return [len(event.saga_ids) for event in routed.events]

    assert [await started(2, go_on=go_on) for go_on in (False, False, True)] == [[2], [], [2]]
    assert await started(5, go_on=True) == [5]
    newer = await seed.event("wide")
    routed = await route_events(router, part_size=3, go_on=False)
    assert ids(routed)[0] == [newer]
    assert await started(9, go_on=True) == [1]
    assert len(await receivers(seed, wide)) == 10


async def test_an_event_with_as_many_subscriptions_as_a_part_is_whole(router: Connection, seed: Seed) -> None:
    for _ in range(4):
        await seed.subscription("wide")
    await seed.event("wide")
    assert [
        (event.whole, event.more) for event in (await route_events(router, wide_from=4, part_size=4)).events
    ] == [(True, False)]


async def test_parts_of_whom_none_is_eligible_are_gone_through(router: Connection, seed: Seed) -> None:
    event_id = await seed.event("wide")
    for _ in range(3):
        await seed.subscription("wide")
    batches = [(await route_events(router, wide_from=1, part_size=1)).events for _ in range(3)]
    assert [[(event.saga_ids, event.whole) for event in batch] for batch in batches] == [
        [([], False)],
        [([], False)],
        [([], True)],
    ]
    assert await receivers(seed, event_id) == []


async def test_a_subscription_that_comes_or_goes_between_parts_is_not_started(
    router: Connection, seed: Seed
) -> None:
    subscriptions = [await seed.subscription("wide") for _ in range(4)]
    event_id = await seed.event("wide")
    await route_events(router, wide_from=2, part_size=2)
    await seed.connection.execute(
        "UPDATE subscriptions SET active = false WHERE id = ANY (%s)", [[subscriptions[0], subscriptions[3]]]
    )
    await seed.subscription("wide")
    while (await route_events(router, wide_from=2, part_size=2)).events:
        pass
    assert await receivers(seed, event_id) == subscriptions[:3]


async def test_routers_at_once_start_each_part_once(connect: Connect, seed: Seed) -> None:
    wanted = [await seed.subscription("wide") for _ in range(100)]
    event_ids = [await seed.event("wide") for _ in range(6)]
    crowd = [await connect(Role.ROUTER) for _ in range(4)]

    async def drain(connection: Connection) -> int:
        started = 0
        while (routed := await route_events(connection, max_events=2, wide_from=7, part_size=7)).events:
            started += len(routed.saga_ids)
        return started

    assert sum(await asyncio.gather(*map(drain, crowd))) == 600
    assert [await receivers(seed, event_id) for event_id in event_ids] == [wanted] * 6


async def test_nothing_waiting_is_no_error(router: Connection) -> None:
    assert await route_events(router) == Routed()


async def test_each_event_comes_with_its_own_sagas_trace_and_delay(router: Connection, seed: Seed) -> None:
    for _ in range(2):
        await seed.subscription("two")
    await seed.subscription("one")
    traced = f"00-{'a' * 32}-{'b' * 16}-01"
    two, none, one = await seed.accept(
        EventDraft("two", "{}", traceparent=traced), EventDraft("none", "{}"), EventDraft("one", "{}")
    )
    await seed.rewrite("UPDATE events SET created_at = now() - interval '1 hour' WHERE id = %s", [none.id])
    routed = await route_events(router)
    assert [event.id for event in routed.events] == [two.id, none.id, one.id]
    assert [len(event.saga_ids) for event in routed.events] == [2, 0, 1]
    assert [event.correlation_id for event in routed.events] == [
        "a" * 32,
        none.webhook_id.hex,
        one.webhook_id.hex,
    ]
    owners = await seed.rows("SELECT id, event_id FROM webhook_delivery_sagas")
    assert {(saga, event.id) for event in routed.events for saga in event.saga_ids} == {
        (row["id"], row["event_id"]) for row in owners
    }
    assert [3_600_000 <= event.delay_ms < 3_700_000 for event in routed.events] == [False, True, False]
    assert all(event.delay_ms >= 0 for event in routed.events)


async def test_the_age_of_the_outbox_is_that_of_its_first_event(router: Connection, seed: Seed) -> None:
    assert await outbox_age_seconds(router) == 0
    await seed.event("a")
    await seed.event("a")
    await seed.rewrite(
        "UPDATE routing_outbox SET created_at = now() - interval '90 seconds'"
        " WHERE event_id = (SELECT min(id) FROM events)"
    )
    assert 90 <= await outbox_age_seconds(router) < 100
    await route_events(router)
    assert await outbox_age_seconds(router) == 0


async def test_a_batch_that_was_cut_says_so_whatever_came_of_it(router: Connection, seed: Seed) -> None:
    """The limit counts all subscriptions of the type, including those that became eligible after the events."""
    event_ids = [await seed.event("a") for _ in range(3)]
    for _ in range(3):
        await seed.subscription("a")
    batches = [(await route_events(router, max_sagas=2)).events for _ in range(3)]
    assert [[(event.id, event.more, event.saga_ids) for event in batch] for batch in batches] == [
        [(event_ids[0], True, [])],
        [(event_ids[1], True, [])],
        [(event_ids[2], False, [])],
    ]


@pytest.mark.parametrize("named", [True, False])
async def test_events_that_the_database_does_not_let_be_routed_stay_alone_and_are_all_told(
    router: Connection, seed: Seed, named: bool
) -> None:
    await seed.subscription("a")
    events = [await seed.event("a") for _ in range(6)]
    sick = {events[0], events[3]}
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT broken CHECK (event_id NOT IN ({}, {})) NOT VALID"
        ).format(*sorted(sick))
    )
    told: list[RefusedRow] = []
    wanted = events if named else None
    routed = await route_events(router, event_ids=wanted, on_refusal=told.append)
    assert routed.event_ids == [event for event in events if event not in sick]
    ids = await seed.rows("SELECT id, webhook_id FROM events ORDER BY id")
    public = {row["id"]: event_id_text(row["webhook_id"]) for row in ids}
    assert [row.event_id for row in told] == [public[event] for event in sorted(sick)]
    await seed.connection.execute("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT broken")
    assert (await route_events(router)).event_ids == sorted(sick)
