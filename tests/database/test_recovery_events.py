"""An endpoint that an event called failing or disabled, and that works again, is told once for each run of failures."""

import asyncio
from typing import Any

from psycopg import sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.endpoint_health import MIN_FAILURES
from hooksaga.core.errors import RefusedRow
from hooksaga.operations.recovery_events import tell_recoveries
from hooksaga.operations.watch_endpoints import disable_gone, judge_failing
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.passing_time import pass_time
from tests.database.seed import Seed
from tests.database.test_watch_endpoints import (
    POLICY,
    count,
    fail,
    failing_endpoint,
    switch_on,
    told,
)
from tests.database.test_watch_endpoints import succeed as succeed_now

RECOVERED = "hooksaga.subscription.recovered"


async def succeed(seed: Seed, subscription_id: int) -> None:
    await route_events(seed.connection)  # operational events that wait
    await succeed_now(seed, subscription_id)


async def recoveries(seed: Seed, monitor: Connection) -> list[dict[str, Any]]:
    """What has been told of recoveries, after the monitor has looked."""
    await count(monitor)
    await tell_recoveries(monitor)
    return [one["payload"]["data"] for one in await told(seed) if one["event_type"] == RECOVERED]


async def warned(seed: Seed, monitor: Connection, endpoints: int) -> list[int]:
    """Endpoints that a warning has named, and that have succeeded since."""
    ids = [await seed.subscription() for _ in range(endpoints)]
    for each in ids:
        await fail(seed, each)
    await count(monitor)
    await pass_time(seed, days=3)
    for each in ids:
        await fail(seed, each, MIN_FAILURES - 1)
    await count(monitor)
    assert len((await judge_failing(monitor, POLICY)).verdicts) == endpoints
    for each in ids:
        await succeed(seed, each)
    await count(monitor)
    return ids


async def test_a_success_after_a_warning_is_told_once(monitor: Connection, seed: Seed) -> None:
    url = "https://shop.example/secret?token=1"
    subscription_id = await failing_endpoint(seed, monitor, days=3, callback_url=url, tenant_id="acme")
    await judge_failing(monitor, POLICY)
    since = await seed.value(
        "SELECT first_failure_at FROM subscription_health WHERE subscription_id = %s", [subscription_id]
    )
    assert await recoveries(seed, monitor) == []
    await succeed(seed, subscription_id)
    (data,) = await recoveries(seed, monitor)
    assert (data["subscription_id"], data["callback_host"]) == (subscription_id, "shop.example")
    assert data["failing_since"] == since.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert data["recovered_at"] > data["failing_since"]
    await succeed(seed, subscription_id)
    assert len(await recoveries(seed, monitor)) == 1


async def test_an_endpoint_that_nobody_was_warned_of_recovers_in_silence(
    monitor: Connection, seed: Seed
) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=1)
    await judge_failing(monitor, POLICY)
    await succeed(seed, subscription_id)
    assert await recoveries(seed, monitor) == []


async def test_each_run_of_failures_is_told_for_itself(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=3)
    await judge_failing(monitor, POLICY)
    await succeed(seed, subscription_id)
    assert len(await recoveries(seed, monitor)) == 1
    await fail(seed, subscription_id)
    await count(monitor)
    await pass_time(seed, days=3)
    await fail(seed, subscription_id, 9)
    await count(monitor)
    assert len((await judge_failing(monitor, POLICY)).verdicts) == 1
    assert len(await recoveries(seed, monitor)) == 1
    await succeed(seed, subscription_id)
    assert len(await recoveries(seed, monitor)) == 2


async def test_a_disabled_endpoint_recovers_after_it_is_activated(monitor: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    jobs = await seed.jobs(subscription_id, 2)
    await seed.finish(jobs[0], "http_410")
    await disable_gone(monitor, POLICY)
    await seed.finish(jobs[1])
    assert await recoveries(seed, monitor) == [], "a request in flight says nothing about an inactive one"
    await switch_on(seed, subscription_id)
    assert await recoveries(seed, monitor) == []
    await succeed(seed, subscription_id)
    (data,) = await recoveries(seed, monitor)
    assert data["subscription_id"] == subscription_id


async def test_monitors_at_once_tell_it_once(connect: Connect, monitor: Connection, seed: Seed) -> None:
    ids = await warned(seed, monitor, 3)
    other = await connect(Role.HEALTH_MONITOR)
    done = await asyncio.gather(tell_recoveries(monitor), tell_recoveries(other))
    assert sorted(one.id for each in done for one in each.endpoints) == ids
    assert len(await recoveries(seed, monitor)) == 3


async def test_a_refused_one_does_not_stop_its_neighbours(monitor: Connection, seed: Seed) -> None:
    poisoned, sound = await warned(seed, monitor, 2)
    pattern = f"subscription:{poisoned}:recovered:%"
    await seed.connection.execute(
        sql.SQL("ALTER TABLE events ADD CONSTRAINT poison CHECK (external_id NOT LIKE {})").format(pattern)
    )
    refused: list[RefusedRow] = []
    done = await tell_recoveries(monitor, on_refusal=refused.append)
    assert [one.id for one in done.endpoints] == [sound]
    assert [one.subscription_id for one in refused] == [poisoned]
    await seed.connection.execute("ALTER TABLE events DROP CONSTRAINT poison")
    assert {data["subscription_id"] for data in await recoveries(seed, monitor)} == {poisoned, sound}
