"""The circuit breaker in the database: it opens, tries one delivery at a time, and closes with any success."""

import asyncio
from collections.abc import Sequence

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.saga import RetryPolicy
from hooksaga.stages.clean_leases import clean_leases
from hooksaga.stages.saga_rows import SagaMoved
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import POLICY
from tests.faults.promises import Promise

FAILURES = POLICY.breaker_failures
FIRST_PROBE = POLICY.probe_seconds + 0.5


@pytest.fixture
async def broken(endpoint: EndpointOf) -> Endpoint:
    """An endpoint whose breaker has just opened. Ten deliveries wait for their second attempt."""
    one = await endpoint(1000)
    await fail(one, await one.events(FAILURES))
    return one


async def fail(one: Endpoint, saga_ids: Sequence[int], error_code: str = "http_500") -> list[SagaMoved]:
    await one.start()
    return await one.answer(saga_ids, error_code)


async def test_failures_in_a_row_open_it_and_nothing_is_started(broken: Endpoint) -> None:
    flow = await broken.flow()
    assert (flow["failures_in_a_row"], flow["breaker_opened_at"] is not None) == (FAILURES, True)
    await broken.events(5)
    assert await broken.started() == []
    assert 3 < (await broken.seconds_until("wake_at") or 0) <= 5
    assert await broken.woken() == []


async def test_one_probe_at_a_time_and_each_failure_doubles_the_wait(
    broken: Endpoint, connect: Connect
) -> None:
    fresh = await broken.events(3)
    await broken.start()
    waits = []
    for number in range(4):
        await broken.pass_time(FIRST_PROBE * 2**number)
        crowd = [await connect(Role.ORCHESTRATOR) for _ in range(3)]
        started = await asyncio.gather(*(broken.start(one) for one in crowd))
        moves = [move for some in started for move in some.moves]
        assert len(moves) == 1
        assert (await broken.flow())["probe_saga_id"] == moves[0].saga_id
        assert await broken.started() == []
        await broken.answer([moves[0].saga_id], "http_500")
        waits.append(await broken.seconds_until("probe_at") or 0)
        assert await broken.started() == []
    assert waits == [pytest.approx(wait, abs=1.5) for wait in (10, 20, 40, 80)]
    probed = await broken.seed.rows(
        "SELECT saga_id FROM webhook_delivery_jobs WHERE saga_id >= %s ORDER BY id", [fresh[0]]
    )
    assert [row["saga_id"] for row in probed][:3] == fresh


async def test_a_probe_is_the_oldest_of_those_with_the_fewest_attempts(broken: Endpoint) -> None:
    fresh = await broken.events(3)
    await broken.pass_time(3600)
    assert await broken.started() == fresh[:1]


async def test_a_probe_that_succeeds_closes_it_and_the_backlog_drains_oldest_first(broken: Endpoint) -> None:
    await broken.seed.grow(broken.id, 4)
    fresh = await broken.events(6)
    await broken.pass_time(FIRST_PROBE)
    (probe,) = await broken.started()
    await broken.answer([probe])
    flow = await broken.flow()
    assert (flow["breaker_opened_at"], flow["probe_at"], flow["failures_in_a_row"]) == (None, None, 0)
    assert await broken.started() == [one for one in fresh if one != probe][:4]
    await broken.pass_time(3600)
    await broken.answer(await broken.in_progress())
    done = len(await broken.in_progress())
    for _ in range(20):
        some = await broken.started()
        if not some:
            break
        done += len(some)
        await broken.answer(some)
    assert set(await broken.statuses()) == {"Completed"}


async def test_a_success_from_before_closes_it_too(endpoint: EndpointOf) -> None:
    one = await endpoint(1000)
    late, *others = await one.events(FAILURES + 1)
    await fail(one, others)
    assert (await one.flow())["breaker_opened_at"] is not None
    await one.answer([late])
    assert (await one.flow())["breaker_opened_at"] is None


async def test_no_attempt_is_used_up_beyond_probes_and_no_probe_takes_the_last_one(
    broken: Endpoint, orchestrator: Connection
) -> None:
    """Hours of a dead endpoint, of events with two attempts each."""
    policy = RetryPolicy(max_retry_limit=2, jitter=0)
    await broken.events(5)
    attempts = 0
    for _ in range(40):
        await broken.pass_time(3600)
        moves = (await orchestrate.start_attempts(orchestrator, policy, subscription_ids=[broken.id])).moves
        attempts += len(moves)
        assert len(moves) == 1
        await broken.answer([moves[0].saga_id], "http_500", policy=policy)
        if attempts > 30:
            break
    assert await broken.ends() == []
    counts = await broken.seed.rows("SELECT attempt_count FROM webhook_delivery_sagas")
    assert {row["attempt_count"] for row in counts} == {1}


@pytest.mark.guarantee(
    Promise.ROOM, "the worker dies that sends the probe of an open circuit breaker", "the probe is sent again"
)
async def test_a_probe_whose_worker_died_comes_back(broken: Endpoint, connect: Connect) -> None:
    await broken.pass_time(FIRST_PROBE)
    await broken.events(2)
    (probe,) = await broken.started()
    job = await broken.seed.active_job(probe)
    cleaner = await connect(Role.LEASE_CLEANER)
    for lost in range(2):
        await broken.seed.claim(job)
        await broken.seed.expire_lease(job)
        (reset,) = await clean_leases(cleaner, max_lost_leases=2)
        assert reset.status == ("Pending" if lost == 0 else "Failed")
        assert await broken.started() == []
    await orchestrate.apply_results(broken.orchestrator, POLICY)
    flow = await broken.flow()
    assert (flow["probes"], flow["probe_saga_id"]) == (0, None)
    await broken.pass_time(FIRST_PROBE)
    assert len(await broken.started()) == 1


async def test_a_new_address_begins_without_the_failures_of_the_old_one(broken: Endpoint) -> None:
    await broken.seed.connection.execute(
        "UPDATE subscriptions SET pending_callback_url = 'https://new.example' WHERE id = %s", [broken.id]
    )
    assert (await broken.flow())["breaker_opened_at"] is not None
    await broken.seed.connection.execute(
        "UPDATE subscriptions SET callback_url = pending_callback_url, pending_callback_url = NULL WHERE id = %s",
        [broken.id],
    )
    flow = await broken.flow()
    assert (flow["breaker_opened_at"], flow["failures_in_a_row"], flow["in_flight_limit"]) == (None, 0, 10)
    fresh = await broken.events(2)
    assert {move.saga_id for move in await broken.woken()} >= set(fresh)


async def test_a_subscription_may_do_without_one(endpoint: EndpointOf) -> None:
    one = await endpoint(1000, circuit_breaker=False)
    await fail(one, await one.events(2 * FAILURES))
    fresh = await one.events(2)
    assert await one.started() == fresh


async def test_switching_it_off_closes_it(broken: Endpoint) -> None:
    fresh = await broken.events(2)
    await broken.seed.connection.execute(
        "UPDATE subscriptions SET circuit_breaker = false WHERE id = %s", [broken.id]
    )
    flow = await broken.flow()
    assert (flow["breaker_opened_at"], flow["probe_at"], flow["probes"]) == (None, None, 0)
    assert {move.saga_id for move in await broken.woken()} == {*fresh}
    await broken.seed.connection.execute(
        "UPDATE subscriptions SET circuit_breaker = true WHERE id = %s", [broken.id]
    )
    assert (await broken.flow())["breaker_opened_at"] is None


# When it is looked at


async def test_a_retry_is_looked_at_when_it_is_due_and_then_no_more(endpoint: EndpointOf) -> None:
    one = await endpoint()
    sagas = await one.events(2)
    await fail(one, sagas[:1])
    assert 25 < (await one.seconds_until("wake_at") or 0) < 35
    await one.answer(sagas[1:])
    assert await one.woken() == []
    await one.pass_time(40)
    assert [move.saga_id for move in await one.woken()] == sagas[:1]
    assert (await one.flow())["wake_at"] is None


async def test_the_next_look_is_at_the_first_of_several_retries(endpoint: EndpointOf) -> None:
    one = await endpoint()
    first, second = await one.events(2)
    await one.start()
    await one.answer([first], "http_500")
    await one.answer([second], "http_500")
    due = await one.seed.value("SELECT min(next_attempt_at) FROM webhook_delivery_sagas")
    assert (await one.flow())["wake_at"] == due
    await one.pass_time(600)
    assert len(await one.woken()) == 2
