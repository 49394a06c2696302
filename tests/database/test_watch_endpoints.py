"""Attempts are counted once each, and an endpoint is given up by the policy's word, with whoever wants told of it."""

import asyncio
import json
from typing import Any

import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, Role, transaction
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.endpoint_health import MIN_FAILURES, DisabledReason, EarlyWarning, HealthPolicy
from hooksaga.core.models import SubscriptionChange
from hooksaga.core.outcomes import UNCOUNTED
from hooksaga.operations.subscriptions import change_subscription
from hooksaga.operations.verify_subscription import mark_verified
from hooksaga.operations.watch_endpoints import STEPS, count_attempts, disable_gone, judge_failing
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.passing_time import pass_time
from tests.database.seed import WORKER, Seed, outcome

POLICY = HealthPolicy(5 * 86_400)


async def health(seed: Seed, subscription_id: int) -> dict[str, Any]:
    return await seed.row("SELECT * FROM subscription_health WHERE subscription_id = %s", [subscription_id])


async def run_of(seed: Seed, subscription_id: int) -> int:
    return (await health(seed, subscription_id))["consecutive_failures"]


async def fail(seed: Seed, subscription_id: int, count: int = 1, error_code: str = "http_503") -> None:
    await route_events(seed.connection)  # operational events that wait
    jobs = await seed.jobs(subscription_id, count)
    assert len(jobs) == count
    for job_id in jobs:
        await seed.finish(job_id, error_code)


async def succeed(seed: Seed, subscription_id: int) -> None:
    (job_id,) = await seed.jobs(subscription_id, 1)
    await seed.finish(job_id)


async def count(monitor: Connection, **options: Any) -> int:
    return await count_attempts(monitor, **{"settle_seconds": 0, **options})


async def is_active(seed: Seed, subscription_id: int) -> bool:
    return await seed.value("SELECT active FROM subscriptions WHERE id = %s", [subscription_id])


async def told(seed: Seed) -> list[dict[str, Any]]:
    """The operational events, oldest first."""
    rows = await seed.rows(
        "SELECT tenant_id, event_type, payload FROM events WHERE source = 'hooksaga' ORDER BY id"
    )
    for row in rows:
        assert row["payload"]["type"] == row["event_type"]
    return rows


async def failing_endpoint(
    seed: Seed, monitor: Connection, *, days: float, failures: int = MIN_FAILURES, **fields: Any
) -> int:
    """A subscription that fails for so many days, the last time just now."""
    subscription_id = await seed.subscription(**fields)
    await fail(seed, subscription_id)
    await count(monitor)
    await pass_time(seed, days=days)
    await fail(seed, subscription_id, failures - 1)
    await count(monitor)
    return subscription_id


async def test_failures_are_counted_from_the_first_on(monitor: Connection, seed: Seed) -> None:
    one, other = await seed.subscription(), await seed.subscription()
    await fail(seed, one, 2)
    await fail(seed, other, 1, "timeout_total")
    await fail(seed, one, 1, "tls_error")
    assert await count(monitor) == 4
    row = await health(seed, one)
    assert (row["consecutive_failures"], row["last_error_code"]) == (3, "tls_error")
    times = await seed.row(
        "SELECT min(finished_at) AS first, max(finished_at) AS last FROM webhook_delivery_jobs"
        " WHERE subscription_id = %s",
        [one],
    )
    assert (row["first_failure_at"], row["last_failure_at"]) == (times["first"], times["last"])
    assert (row["last_success_at"], await run_of(seed, other)) == (None, 1)


async def test_counting_again_changes_nothing(monitor: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, 3)
    assert [await count(monitor) for _ in range(3)] == [3, 0, 0]
    assert await run_of(seed, subscription_id) == 3


async def test_a_run_goes_on_over_slices_of_any_size(monitor: Connection, seed: Seed) -> None:
    subscription_id, calm = await seed.subscription(), await seed.subscription()
    await fail(seed, subscription_id, 7)
    await succeed(seed, calm)
    assert [await count(monitor, limit=3) for _ in range(4)] == [3, 3, 2, 0]
    row = await health(seed, subscription_id)
    first = await seed.value("SELECT min(finished_at) FROM webhook_delivery_jobs")
    assert (row["consecutive_failures"], row["first_failure_at"]) == (7, first)


async def test_results_of_the_same_moment_are_in_one_slice(monitor: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, 5)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = now()")
    assert [await count(monitor, limit=2) for _ in range(2)] == [5, 0]
    assert await run_of(seed, subscription_id) == 5


@pytest.mark.parametrize("limit", [1, 100])
async def test_a_success_resets_everything(monitor: Connection, seed: Seed, limit: int) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=3)
    await judge_failing(monitor, POLICY)
    assert (await health(seed, subscription_id))["warned_at_50"] is not None
    await fail(seed, subscription_id, 2)
    await succeed(seed, subscription_id)
    await fail(seed, subscription_id, 1, "dns_error")
    while await count(monitor, limit=limit):
        pass
    row = await health(seed, subscription_id)
    assert (row["consecutive_failures"], row["warned_at_50"]) == (1, None)
    assert row["first_failure_at"] == row["last_failure_at"] > row["last_success_at"]
    await succeed(seed, subscription_id)
    await count(monitor)
    row = await health(seed, subscription_id)
    assert (row["consecutive_failures"], row["first_failure_at"]) == (0, None)
    assert row["last_error_code"] == "dns_error"


@pytest.mark.parametrize("error_code", UNCOUNTED)
async def test_what_says_nothing_of_the_endpoint_is_not_counted(
    monitor: Connection, seed: Seed, error_code: str
) -> None:
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, 2, error_code)
    await count(monitor)
    row = await health(seed, subscription_id)
    assert (row["consecutive_failures"], row["last_failure_at"], row["last_error_code"]) == (0, None, None)


async def test_a_result_that_commits_late_is_not_missed(
    monitor: Connection, connect: Connect, seed: Seed
) -> None:
    subscription_id = await seed.subscription()
    late, early = await seed.jobs(subscription_id, 2)
    claimed, _ = await seed.claim(late, early)
    worker = await connect(Role.DELIVERY)
    async with transaction(worker):
        await deliver.record_results(worker, [AttemptResult(claimed, outcome("http_500"))], worker_id=WORKER)
        assert await count_attempts(monitor) == 0
    await pass_time(seed, minutes=2)
    assert await count_attempts(monitor) == 1
    assert await run_of(seed, subscription_id) == 1


async def test_a_fresh_result_is_left_for_later(monitor: Connection, seed: Seed) -> None:
    """A result that another worker is writing now may have an earlier time."""
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id)
    assert await count_attempts(monitor) == 0
    await pass_time(seed, minutes=2)
    assert await count_attempts(monitor) == 1


async def test_monitors_at_once_count_each_attempt_once(connect: Connect, seed: Seed) -> None:
    subscriptions = [await seed.subscription() for _ in range(3)]
    for subscription_id in subscriptions:
        await fail(seed, subscription_id, 40)
    crowd = [await connect(Role.HEALTH_MONITOR) for _ in range(4)]

    async def drain(connection: Connection) -> int:
        return sum([await count(connection, limit=7) for _ in range(40)])

    assert sum(await asyncio.gather(*map(drain, crowd))) == 120
    assert [await run_of(seed, one) for one in subscriptions] == [40] * 3


async def test_half_the_time_and_shortly_before_the_end_somebody_is_warned_once_each(
    monitor: Connection, seed: Seed
) -> None:
    subscription_id = await failing_endpoint(
        seed, monitor, days=2.49, callback_url="https://shop.example/secret?token=1", tenant_id="acme"
    )
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    await pass_time(seed, days=0.02)
    (verdict,) = (await judge_failing(monitor, POLICY)).verdicts
    assert (verdict.subscription_id, verdict.what) == (subscription_id, EarlyWarning(50))
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    await pass_time(seed, days=1.98)
    await fail(seed, subscription_id)
    await count(monitor)
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    await pass_time(seed, days=0.02)
    (verdict,) = (await judge_failing(monitor, POLICY)).verdicts
    assert verdict.what == EarlyWarning(90)
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    first, second = await told(seed)
    assert (first["tenant_id"], first["event_type"]) == ("acme", "hooksaga.subscription.failing")
    data = first["payload"]["data"]
    assert (data["percent"], second["payload"]["data"]["percent"]) == (50, 90)
    assert (data["callback_host"], data["error_code"]) == ("shop.example", "http_503")
    assert data["consecutive_failures"] == MIN_FAILURES
    assert "secret" not in json.dumps(first["payload"])
    assert await is_active(seed, subscription_id)


async def test_after_days_of_nothing_but_failure_it_is_switched_off(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=4.999)
    await judge_failing(monitor, POLICY)
    assert await is_active(seed, subscription_id)
    await pass_time(seed, days=0.002)
    done = await judge_failing(monitor, POLICY)
    assert [verdict.what for verdict in done.verdicts] == [DisabledReason.FAILING]
    row = await seed.row("SELECT * FROM subscriptions WHERE id = %s", [subscription_id])
    assert (row["active"], row["verified"], row["eligible_since"], row["deleted_at"]) == (
        False,
        True,
        None,
        None,
    )
    noted = await health(seed, subscription_id)
    assert noted["disabled_reason"] == "failing"
    event = (await told(seed))[-1]
    assert event["event_type"] == "hooksaga.subscription.disabled"
    assert event["payload"]["data"]["subscription_id"] == subscription_id
    assert event["payload"]["data"]["reason"] == "failing"
    assert (await judge_failing(monitor, POLICY)).verdicts == []


async def test_an_event_of_it_is_routed_as_any_other(monitor: Connection, seed: Seed) -> None:
    watcher = await seed.subscription("hooksaga.subscription.disabled")
    elsewhere = await seed.subscription("hooksaga.subscription.disabled", tenant_id="other")
    gone = await seed.subscription()
    await fail(seed, gone, 1, "http_410")
    done = await disable_gone(monitor, POLICY)
    routed = await route_events(seed.connection, event_ids=[event.id for event in done.events])
    takers = await seed.rows(
        "SELECT subscription_id FROM webhook_delivery_sagas WHERE id = ANY (%s)", [routed.saga_ids]
    )
    assert [row["subscription_id"] for row in takers] == [watcher] != [elsewhere]


async def test_few_failures_are_not_enough(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=6, failures=MIN_FAILURES - 1)
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    await fail(seed, subscription_id)
    await count(monitor)
    assert len((await judge_failing(monitor, POLICY)).verdicts) == 1


async def test_an_endpoint_without_traffic_is_left_alone(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=0.1)
    await pass_time(seed, days=6)
    assert (await judge_failing(monitor, POLICY)).verdicts == []
    assert await is_active(seed, subscription_id)


async def test_zero_days_means_never(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=300)
    assert (await judge_failing(monitor, HealthPolicy(0))).verdicts == []
    assert await is_active(seed, subscription_id)


async def test_one_410_is_enough(monitor: Connection, seed: Seed) -> None:
    subscription_id, calm = await seed.subscription(), await seed.subscription()
    await fail(seed, subscription_id, 1, "http_410")
    await fail(seed, calm, 1, "http_404")
    done = await disable_gone(monitor, HealthPolicy(0))
    assert [verdict.what for verdict in done.verdicts] == [DisabledReason.GONE]
    assert [await is_active(seed, one) for one in (subscription_id, calm)] == [False, True]
    (event,) = await told(seed)
    assert event["payload"]["data"]["error_code"] == "http_410"
    assert event["payload"]["data"]["consecutive_failures"] == 1
    assert (await disable_gone(monitor, POLICY)).verdicts == []
    await count(monitor)
    assert (await health(seed, subscription_id))["disabled_reason"] == "gone"


async def test_monitors_at_once_switch_off_and_tell_once(connect: Connect, seed: Seed) -> None:
    for _ in range(10):
        await fail(seed, await seed.subscription(), 1, "http_410")
    crowd = [await connect(Role.HEALTH_MONITOR) for _ in range(4)]
    done = await asyncio.gather(*(disable_gone(one, POLICY, limit=3) for one in crowd))
    rest = [await disable_gone(crowd[0], POLICY) for _ in range(2)]
    ids = [verdict.subscription_id for watched in [*done, *rest] for verdict in watched.verdicts]
    assert len(ids) == len(set(ids)) == len(await told(seed)) == 10


async def test_nothing_is_half_done(monitor: Connection, seed: Seed, owner: Connection) -> None:
    """The event cannot be stored: the subscription stays on, and its health says nothing of an end."""
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, 1, "http_410")
    await owner.execute("REVOKE INSERT ON events FROM endpoint_health_monitor")
    await owner.execute("REVOKE INSERT (tenant_id) ON events FROM endpoint_health_monitor")
    with pytest.raises(Exception, match="permission denied"):
        await disable_gone(monitor, POLICY)
    assert await is_active(seed, subscription_id)
    assert (await health(seed, subscription_id))["disabled_at"] is None


async def switch_on(seed: Seed, subscription_id: int) -> None:
    await change(seed, subscription_id, SubscriptionChange(active=True))
    await seed.grow(subscription_id)


async def change(seed: Seed, subscription_id: int, wanted: SubscriptionChange) -> None:
    await change_subscription(
        seed.connection, subscription_id, wanted, tenant_id=None, policy=AddressPolicy(), box=seed.box
    )


async def test_switching_on_again_starts_afresh(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=6)
    await fail(seed, subscription_id, 1, "http_410")
    await judge_failing(monitor, POLICY)
    await switch_on(seed, subscription_id)
    row = await health(seed, subscription_id)
    fresh = ("consecutive_failures", "first_failure_at", "disabled_at", "disabled_reason", "warned_at_50")
    assert [row[name] for name in fresh] == [0, None, None, None, None]
    assert row["last_error_code"] == "http_503"
    assert (await disable_gone(monitor, POLICY)).verdicts == [], "that 410 was before"
    await count(monitor)
    assert await run_of(seed, subscription_id) == 0
    await fail(seed, subscription_id, 1, "http_410")
    assert len((await disable_gone(monitor, POLICY)).verdicts) == 1
    assert len(await told(seed)) == 2


async def test_a_new_address_starts_afresh(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=6)
    (old,) = await seed.jobs(subscription_id, 1)
    (claimed,) = await seed.claim(old)
    url = "https://new.example.com/hook"
    await change(seed, subscription_id, SubscriptionChange(callback_url=url))
    assert await run_of(seed, subscription_id) == MIN_FAILURES, "it waits to be verified"
    await mark_verified(seed.connection, subscription_id, url)
    assert await run_of(seed, subscription_id) == 0
    gone = AttemptResult(claimed, outcome("http_410"))
    await deliver.record_results(seed.connection, [gone], worker_id=WORKER)
    assert (await disable_gone(monitor, POLICY)).verdicts == [], "the old address answered that"


async def test_one_that_was_switched_off_by_hand_is_not_judged(monitor: Connection, seed: Seed) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=6)
    await fail(seed, subscription_id, 1, "http_410")
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [subscription_id])
    for step in STEPS:
        await step(monitor, POLICY)
    assert await told(seed) == []
    assert (await health(seed, subscription_id))["disabled_at"] is None


async def test_an_endpoint_whose_fresh_start_is_under_way_is_counted_after_it(
    monitor: Connection, seed: Seed, connect: Connect
) -> None:
    subscription_id = await failing_endpoint(seed, monitor, days=1)
    await seed.connection.execute("UPDATE subscriptions SET active = false WHERE id = %s", [subscription_id])
    job = await seed.job(await seed.subscription())
    await seed.rewrite(
        "UPDATE webhook_delivery_jobs SET status = 'Failed', error_code = 'http_500', leased_at = now(),"
        " finished_at = now(), subscription_id = %s WHERE id = %s",
        [subscription_id, job],
    )
    human = await connect(Role.SUBSCRIPTIONS)
    async with human.transaction():
        await human.execute("UPDATE subscriptions SET active = true WHERE id = %s", [subscription_id])
        before = await run_of(seed, subscription_id)
        assert await count(monitor) == 1
        assert await run_of(seed, subscription_id) == before > 0
    assert await run_of(seed, subscription_id) == 0
    assert await count(monitor) == 1
    assert await run_of(seed, subscription_id) == 0


async def test_a_small_part_of_a_day_is_enough_for_a_test(monitor: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, MIN_FAILURES)
    await count(monitor)
    await pass_time(seed, seconds=1)
    (verdict,) = (await judge_failing(monitor, HealthPolicy(1))).verdicts
    assert verdict.what is DisabledReason.FAILING


async def test_subscriptions_that_the_database_does_not_let_be_switched_off_are_told_and_hold_up_nobody(
    monitor: Connection, seed: Seed
) -> None:
    gone = [await seed.subscription() for _ in range(4)]
    for subscription_id in gone:
        await fail(seed, subscription_id, error_code="http_410")
    sick = (gone[0], gone[2])
    await seed.connection.execute(
        sql.SQL(
            "ALTER TABLE subscriptions ADD CONSTRAINT broken CHECK (active OR id NOT IN ({}, {}))"
        ).format(*sick)
    )
    done = await disable_gone(monitor, HealthPolicy())
    assert [verdict.subscription_id for verdict in done.verdicts] == [gone[1], gone[3]]
    assert [row.subscription_id for row in done.refused] == list(sick)
    assert [await is_active(seed, subscription_id) for subscription_id in gone] == [True, False, True, False]
    assert len(done.events) == 2
