"""Flow control in the database: room is enforced where it is taken, and what waits starts when its room opens."""

import asyncio

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import RowRefused
from hooksaga.core.saga import RetryPolicy
from hooksaga.core.subscription_limits import RateLimit
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.flowing import EndpointOf
from tests.database.seed import POLICY, Seed
from tests.faults.promises import Promise

# Room


async def test_no_more_is_started_than_the_limit_and_each_result_makes_room(endpoint: EndpointOf) -> None:
    one = await endpoint(3)
    sagas = await one.events(6)
    assert await one.started() == sagas[:3]
    assert await one.started() == []
    moves = await one.answer(sagas[:2])
    assert {(move.has_due, move.made_room) for move in moves} == {(True, True)}
    assert await one.started() == [*sagas[3:6]][: int((await one.flow())["in_flight_limit"]) - 1]


async def test_a_result_of_few_in_progress_has_nobody_look(endpoint: EndpointOf) -> None:
    """What is due beside them came just now, and whoever routed it has it started."""
    one = await endpoint(10)
    sagas = await one.events(2)
    assert await one.started() == sagas
    await one.events(1)
    (move,) = await one.answer(sagas[:1])
    assert (move.has_due, move.made_room) == (True, False)


async def test_the_limit_grows_while_it_is_full(endpoint: EndpointOf) -> None:
    one = await endpoint(2)
    sagas = await one.events(20)
    under_way: list[int] = []
    sizes = []
    for _ in range(3):
        under_way += await one.started()
        sizes.append(len(under_way))
        await one.answer(under_way)
        under_way = []
    assert sizes == [2, 4, 8]
    assert (await one.flow())["in_flight_limit"] == 16
    assert len(sagas) == 20


@pytest.mark.guarantee(
    Promise.ROOM, "several orchestrators at once start into one room", "never more than the room"
)
async def test_orchestrators_at_once_never_start_more_than_the_room(
    endpoint: EndpointOf, connect: Connect
) -> None:
    one = await endpoint(7)
    await one.events(60)
    crowd = [await connect(Role.ORCHESTRATOR) for _ in range(4)]

    async def start_often(connection: Connection) -> int:
        return sum([len((await one.start(connection)).moves) for _ in range(10)])

    assert sum(await asyncio.gather(*map(start_often, crowd))) == 7
    assert len(await one.in_progress()) == 7


@pytest.mark.guarantee(
    Promise.ROOM, "a session ends within the transaction that starts attempts", "no room leaked"
)
async def test_a_session_that_ends_within_its_transaction_leaks_no_room(
    endpoint: EndpointOf, connect: Connect, seed: Seed
) -> None:
    one = await endpoint(5)
    sagas = await one.events(8)
    dying = await connect(Role.ORCHESTRATOR)
    await dying.execute("BEGIN")
    assert len((await one.start(dying)).moves) == 5
    assert (await one.start()).again == [one.id]  # its flow row is locked
    await seed.connection.execute("SELECT pg_terminate_backend(%s, 10000)", [dying.info.backend_pid])
    assert await one.started() == sagas[:5]


async def test_a_lone_success_writes_no_flow(endpoint: EndpointOf) -> None:
    one = await endpoint()
    await one.start()  # that it was verified is noted
    before = await one.flow()
    assert before["wake_at"] is None
    for _ in range(3):
        (saga_id,) = await one.events(1)
        assert await one.started() == [saga_id]
        await one.answer([saga_id])
    assert await one.flow() == before


async def test_a_batch_is_shared_by_the_subscriptions_of_a_call(
    endpoint: EndpointOf, orchestrator: Connection
) -> None:
    crowded, others = await endpoint(1000), [await endpoint(1000) for _ in range(9)]
    await crowded.events(300)
    for other in others:
        await other.events(2)
    ids = [crowded.id, *(other.id for other in others)]
    started = await orchestrate.start_attempts(orchestrator, POLICY, subscription_ids=ids, most_woken=0)
    assert [len(await one.in_progress()) for one in (crowded, *others)] == [50, *[2] * 9]
    assert started.again == [crowded.id]


# Rate limit and Retry-After


async def test_a_rate_limit_is_a_bucket_of_tokens(endpoint: EndpointOf) -> None:
    one = await endpoint(1000, rate_limit=RateLimit(count=3, per_seconds=60))
    sagas = await one.events(8)
    assert await one.started() == sagas[:3]
    assert 15 < (await one.seconds_until("wake_at") or 0) <= 20
    assert await one.woken() == []
    await one.pass_time(20.5)
    assert [move.saga_id for move in await one.woken()] == sagas[3:4]
    await one.pass_time(3600)
    assert await one.started() == sagas[4:7]
    await one.answer(sagas[:7])
    assert await one.started() == []


@pytest.mark.parametrize("error_code", ["http_429", "http_503"])
async def test_retry_after_holds_for_the_whole_subscription(endpoint: EndpointOf, error_code: str) -> None:
    one, other = await endpoint(4), await endpoint()
    sagas = await one.events(3)
    await one.seed.grow(one.id, 1)
    assert await one.started() == sagas[:1]
    await one.answer(sagas[:1], error_code, retry_after_seconds=120)
    assert await one.started() == []
    assert 115 < (await one.seconds_until("wake_at") or 0) <= 120
    assert len(await other.events(1)) == len(await other.started()) == 1
    await one.pass_time(121)
    assert [move.subscription_id for move in await one.woken()] == [one.id]


async def test_an_hour_is_the_longest_that_a_receiver_may_ask_for(endpoint: EndpointOf) -> None:
    one = await endpoint()
    sagas = await one.events(1)
    await one.started()
    await one.answer(sagas, "http_503", retry_after_seconds=86_400)
    assert 3590 < (await one.seconds_until("retry_after_until") or 0) <= 3600


# What nobody else waits for


@pytest.mark.guarantee(Promise.ROOM, "somebody locks the flow state of one subscription")
async def test_a_locked_flow_row_delays_only_its_subscription(
    endpoint: EndpointOf, connect: Connect, orchestrator: Connection
) -> None:
    await orchestrator.execute("SET lock_timeout = '500ms'")
    held, other = await endpoint(), await endpoint()
    (first,), (second,) = await held.events(1), await other.events(1)
    failing = await held.events(1)
    assert await held.started() == [first, *failing]
    await held.events(1)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute(
            "SELECT FROM subscription_flow WHERE subscription_id = %s FOR UPDATE", [held.id]
        )
        ids = [held.id, other.id]
        started = await orchestrate.start_attempts(orchestrator, POLICY, subscription_ids=ids)
        assert [move.saga_id for move in started.moves] == [second]
        assert started.again == [held.id]
        left: list[int] = []
        for saga_id, code in ((first, None), (failing[0], "http_503"), (second, "http_503")):
            await held.seed.finish(await held.seed.active_job(saga_id), code)
        moves = await orchestrate.apply_results(orchestrator, POLICY, on_left=left.append)
        assert {move.subscription_id for move in moves} == {other.id}
        assert len(left) == 2
    assert len(await orchestrate.apply_results(orchestrator, POLICY)) == 2


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_poisoned_saga_delays_nobody(
    endpoint: EndpointOf, orchestrator: Connection, ordered: bool
) -> None:
    one, other = await endpoint(2, ordered=ordered), await endpoint()
    sagas = [(await one.events(1, f"key {n}"))[0] for n in range(5)]
    theirs = await other.events(1)
    await one.seed.connection.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken CHECK (saga_id <> {}) NOT VALID"
        ).format(sagas[1])
    )
    for expected in ([sagas[0], sagas[2]], [sagas[3], sagas[4]]):
        with pytest.raises(RowRefused, match="broken") as refused:
            await orchestrate.start_attempts(orchestrator, POLICY, subscription_ids=[one.id, other.id])
        assert [row.saga_id for row in refused.value.rows] == [sagas[1]]
        assert await one.in_progress() == expected
        await one.answer(expected, policy=RetryPolicy())
    assert await other.in_progress() == theirs
