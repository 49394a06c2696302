"""Ordered subscriptions: one delivery per ordering key at a time, in the order in which events were accepted."""

import asyncio
import random

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.operations.requeue import requeue_dead_letters
from hooksaga.stages import start_attempts
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import LAST_ATTEMPT, POLICY
from tests.faults.promises import Promise


@pytest.fixture
async def ordered(endpoint: EndpointOf) -> Endpoint:
    return await endpoint(1000, ordered=True)


async def test_the_next_of_a_key_starts_when_the_one_before_has_ended(ordered: Endpoint) -> None:
    a, b = await ordered.events(3, "a"), await ordered.events(2, "b")
    assert sorted(await ordered.started()) == [a[0], b[0]]
    assert await ordered.started() == []
    (done,) = await ordered.answer([a[0]])
    assert done.has_due
    assert done.made_room
    assert await ordered.started() == [a[1]]
    await ordered.answer([a[1]], "http_500")
    assert await ordered.started() == []  # it waits for its retry, and the next one with it
    await ordered.pass_time(60)
    assert await ordered.started() == [a[1]]
    await ordered.answer([a[1]], "http_500", policy=LAST_ATTEMPT)
    assert await ordered.ends() == ["http_500"]
    assert await ordered.started() == [a[2]]


async def test_what_is_canceled_lets_the_next_go(ordered: Endpoint) -> None:
    first, second = await ordered.events(2, "a")
    await orchestrate.cancel_saga(ordered.orchestrator, POLICY, first)
    assert await ordered.started() == [second]


async def test_events_without_a_key_are_one_sequence(ordered: Endpoint) -> None:
    plain, keyed = await ordered.events(3), await ordered.events(1, "a")
    assert sorted(await ordered.started()) == [plain[0], *keyed]
    await ordered.answer([plain[0]])
    assert await ordered.started() == [plain[1]]


async def test_a_subscription_that_is_not_ordered_ignores_keys(endpoint: EndpointOf) -> None:
    one = await endpoint()
    sagas = await one.events(3, "a")
    assert await one.started() == sagas


@pytest.mark.guarantee(Promise.ORDERED, "an earlier event of the key is still to be routed")
async def test_a_key_waits_for_an_earlier_event_that_is_still_to_be_routed(ordered: Endpoint) -> None:
    (early,) = await ordered.accept(1, "a")
    (late,) = await ordered.accept(1, "a")
    (other,) = await ordered.accept(1, "b")
    await route_events(ordered.seed.connection, event_ids=[late, other])
    started = await ordered.start()
    assert [move.saga_id for move in started.moves] == [await saga_of(ordered, other)]
    assert 0 < (await ordered.seconds_until("wake_at") or 0) <= 1
    await route_events(ordered.seed.connection, event_ids=[early])
    assert await ordered.started() == [await saga_of(ordered, early)]
    await ordered.answer(await ordered.in_progress())
    assert await ordered.started() == [await saga_of(ordered, late)]


@pytest.mark.parametrize("key", [None, "b"])
async def test_an_event_of_another_key_or_tenant_is_not_waited_for(
    ordered: Endpoint, key: str | None
) -> None:
    await ordered.accept(1, key)
    (late,) = await ordered.accept(1, "a")
    event_type = await ordered.seed.value(
        "SELECT event_types[1] FROM subscriptions WHERE id = %s", [ordered.id]
    )
    await ordered.seed.event(event_type, tenant_id="other")
    await route_events(ordered.seed.connection, event_ids=[late])
    assert await ordered.started() == [await saga_of(ordered, late)]


async def saga_of(one: Endpoint, event_id: int) -> int:
    return await one.seed.value("SELECT id FROM webhook_delivery_sagas WHERE event_id = %s", [event_id])


async def test_a_requeue_is_outside_of_the_order(ordered: Endpoint, connect: Connect) -> None:
    first, second, _ = await ordered.events(3, "a")
    await ordered.started()
    await ordered.answer([first], "http_500", policy=LAST_ATTEMPT)
    assert await ordered.started() == [second]
    letter = await ordered.seed.value("SELECT id FROM dead_letters")
    await requeue_dead_letters(await connect(Role.ADMIN), [letter])
    (again,) = await ordered.started()
    assert await ordered.in_progress() == [second, again]


async def test_keys_take_turns_where_there_is_room_for_one(endpoint: EndpointOf) -> None:
    one = await endpoint(1, ordered=True, max_in_flight=1)
    keys = {saga_id: key for key in (None, "a", "b") for saga_id in await one.events(3, key)}
    served = []
    for _ in range(9):
        (saga_id,) = await one.started()
        served.append(saga_id)
        await one.answer([saga_id])
    assert [keys[saga_id] for saga_id in served] == ["a", "b", None] * 3
    for key in (None, "a", "b"):
        mine = [saga_id for saga_id in served if keys[saga_id] == key]
        assert mine == sorted(mine)


@pytest.mark.parametrize("waiting", [0, 4, 9])
async def test_a_walk_over_many_keys_is_continued(
    ordered: Endpoint, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    """A call looks at three keys. The first ones wait for their retry."""
    monkeypatch.setattr(start_attempts, "MAX_KEYS", 3)
    sagas = [(await ordered.events(1, f"key {n}"))[0] for n in range(10)]
    if waiting:
        await ordered.seed.rewrite(
            "UPDATE webhook_delivery_sagas SET status = 'PendingRetry', attempt_count = 1,"
            " next_attempt_at = now() + interval '1 hour' WHERE id = ANY (%s)",
            [sagas[:waiting]],
        )
    found: list[int] = []
    for _ in range(8):
        started = await ordered.start()
        found += [move.saga_id for move in started.moves]
        if started.again != [ordered.id]:
            assert 0 < (await ordered.seconds_until("wake_at") or 0) <= 1 or len(found) == 10 - waiting
    assert found == sagas[waiting:]


@pytest.mark.guarantee(Promise.ORDERED, "a second delivery of a key is started by hand", "refused")
async def test_the_database_refuses_a_second_delivery_of_a_key(ordered: Endpoint) -> None:
    _, second = await ordered.events(2, "a")
    await ordered.started()
    with pytest.raises(errors.UniqueViolation, match="uniq_saga_order"):
        await ordered.seed.connection.execute(
            "UPDATE webhook_delivery_sagas SET status = 'InProgress' WHERE id = %s", [second]
        )


@pytest.mark.guarantee(Promise.ORDERED, "two routers and two orchestrators at once")
async def test_two_routers_and_orchestrators_at_once_break_no_order(
    ordered: Endpoint, connect: Connect
) -> None:
    """Routers take the events in any order, a few at a time."""
    keys, random_order = [None, "a", "b", "c"], random.Random(7)
    events = [(await ordered.accept(1, random_order.choice(keys)))[0] for _ in range(60)]
    random_order.shuffle(events)
    routers = [await connect(Role.ROUTER) for _ in range(2)]
    crowd = [await connect(Role.ORCHESTRATOR) for _ in range(2)]
    done: list[int] = []

    async def route(connection: Connection, mine: list[int]) -> None:
        for event_id in mine:
            await route_events(connection, event_ids=[event_id])

    async def start(connection: Connection) -> None:
        for _ in range(15):
            await ordered.start(connection)

    await asyncio.gather(
        route(routers[0], events[::2]), route(routers[1], events[1::2]), *(start(one) for one in crowd)
    )
    while under_way := await ordered.in_progress() or await ordered.started():
        done += under_way
        await ordered.answer(under_way)
        await ordered.start()
    rows = await ordered.seed.rows(
        "SELECT g.event_id, g.ordering_key, j.created_at, j.id FROM webhook_delivery_jobs j"
        " JOIN webhook_delivery_sagas g ON g.id = j.saga_id ORDER BY j.id"
    )
    assert len(rows) == len(done) == 60
    for key in ("", "a", "b", "c"):
        mine = [row["event_id"] for row in rows if row["ordering_key"] == key]
        assert mine == sorted(mine)
