"""The views, read as the role that dashboards log in as."""

from dataclasses import asdict
from typing import Any

import pytest
from psycopg import errors
from psycopg.rows import dict_row

from hooksaga.adapters.database import Connection, Role
from hooksaga.adapters.queries import load_queries
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.observe import FlowGauges, read_flow_gauges, read_gauges
from hooksaga.stages.route_events import route_events
from hooksaga.stages.wakes import oldest_due_seconds
from tests.conftest import Connect
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import Seed


@pytest.fixture
async def observer(connect: Connect) -> Connection:
    return await connect(Role.OBSERVER)


async def read(observer: Connection, query: str) -> list[dict[str, Any]]:
    async with observer.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load_queries("observe")[query], {"limit": 100})
        return await cursor.fetchall()


async def move_due_time(seed: Seed, saga_id: int, seconds: int) -> None:
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() - make_interval(secs => %s) WHERE id = %s",
        [seconds, saga_id],
    )


async def test_where_nothing_waits_ages_are_zero_and_lists_are_empty(observer: Connection) -> None:
    (outbox,) = await read(observer, "outbox_age")
    assert outbox == {"event_id": None, "accepted_at": None, "age_seconds": 0}
    (oldest,) = await read(observer, "oldest_due_saga")
    assert (oldest["saga_id"], oldest["event_id"], oldest["age_seconds"]) == (None, None, 0)
    for view in ("retry_debt_by_subscription", "in_flight_by_subscription", "deliveries_per_minute"):
        assert await read(observer, view) == []
    assert set(asdict(await read_gauges(observer)).values()) == {0}


async def test_the_outbox_is_as_old_as_its_first_event(observer: Connection, seed: Seed) -> None:
    first = await seed.event("a")
    await seed.event("a")
    await seed.rewrite(
        "UPDATE routing_outbox SET created_at = now() - interval '5 minutes' WHERE event_id = %s", [first]
    )
    (outbox,) = await read(observer, "outbox_age")
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [first])
    assert outbox["event_id"] == f"evt_{webhook_id.hex}"
    assert 300 <= outbox["age_seconds"] < 310
    await route_events(seed.connection)
    assert (await read(observer, "outbox_age"))[0]["age_seconds"] == 0


@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.PENDING_RETRY])
async def test_the_oldest_due_saga_is_found_in_either_state(
    observer: Connection, connect: Connect, seed: Seed, status: SagaStatus
) -> None:
    older, younger = await seed.saga(status), await seed.saga(SagaStatus.PENDING)
    waits = await seed.saga(SagaStatus.PENDING_RETRY)
    for saga_id, seconds in ((older, 600), (younger, 60), (waits, -600)):
        await move_due_time(seed, saga_id, seconds)
    (oldest,) = await read(observer, "oldest_due_saga")
    assert (oldest["saga_id"], oldest["status"]) == (older, status)
    assert 600 <= oldest["age_seconds"] < 610
    assert 600 <= await oldest_due_seconds(await connect(Role.ORCHESTRATOR)) < 610


async def test_a_saga_that_is_due_later_is_no_oldest_one(
    observer: Connection, connect: Connect, seed: Seed
) -> None:
    await move_due_time(seed, await seed.saga(SagaStatus.PENDING_RETRY), -600)
    (oldest,) = await read(observer, "oldest_due_saga")
    assert (oldest["saga_id"], oldest["age_seconds"]) == (None, 0)
    assert await oldest_due_seconds(await connect(Role.ORCHESTRATOR)) == 0


async def test_retry_debt_is_what_failed_and_waits(observer: Connection, seed: Seed) -> None:
    bad, good = await seed.subscription(), await seed.subscription()
    waiting = [await seed.saga(SagaStatus.PENDING_RETRY, bad) for _ in range(3)]
    await move_due_time(seed, waiting[0], 30)
    for status in (SagaStatus.PENDING, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED):
        await seed.saga(status, good)
    (debt,) = await read(observer, "retry_debt_by_subscription")
    assert (debt["subscription_id"], debt["waiting_sagas"], debt["due_sagas"]) == (bad, 3, 1)
    first = "SELECT next_attempt_at FROM webhook_delivery_sagas WHERE id = %s"
    assert debt["next_attempt_at"] == await seed.value(first, [waiting[0]])


async def test_in_flight_is_what_a_worker_holds(observer: Connection, seed: Seed) -> None:
    busy = await seed.subscription()
    jobs = [await seed.job(busy) for _ in range(3)]
    await seed.claim(jobs[0], jobs[1])
    await seed.expire_lease(jobs[1])
    await seed.job()
    (held,) = await read(observer, "in_flight_by_subscription")
    assert (held["subscription_id"], held["leased_jobs"], held["expired_leases"]) == (busy, 2, 1)
    assert held["oldest_leased_at"] is not None


async def test_deliveries_are_counted_by_the_minute_and_forgotten_after_an_hour(
    observer: Connection, seed: Seed
) -> None:
    for ending in (None, None, "http_503"):
        await seed.finish(await seed.job(), ending, duration_ms=20 if ending else 5)
    old = await seed.job()
    await seed.finish(old)
    at: Any = (
        "UPDATE webhook_delivery_jobs SET finished_at = date_trunc('minute', now()) - %s::interval WHERE id "
    )
    await seed.rewrite(at + "<> %s", ["10 minutes", old])
    await seed.rewrite(at + "= %s", ["61 minutes", old])
    (minute,) = await read(observer, "deliveries_per_minute")
    assert minute.pop("minute").second == 0
    assert minute == {"succeeded": 2, "failed": 1, "mean_duration_ms": 10.0, "max_duration_ms": 20}


async def test_the_gauges_are_the_views(observer: Connection, seed: Seed) -> None:
    await seed.claim(await seed.job(), await seed.job())
    await move_due_time(seed, await seed.saga(SagaStatus.PENDING_RETRY), 120)
    await seed.event("nobody")
    await seed.rewrite("UPDATE routing_outbox SET created_at = now() - interval '30 seconds'")
    gauges = await read_gauges(observer)
    assert (gauges.retry_debt_sagas, gauges.in_flight_jobs) == (1, 2)
    assert 120 <= gauges.oldest_due_saga_age_seconds < 130
    assert 30 <= gauges.outbox_age_seconds < 40


async def with_flow(endpoint: EndpointOf, columns: str, **fields: Any) -> Endpoint:
    """A subscription with something waiting, whose flow row is changed so."""
    one = await endpoint(**fields)
    await one.events(2)
    await one.seed.connection.execute(
        f"UPDATE subscription_flow SET {columns} WHERE subscription_id = %s".encode(), [one.id]
    )
    return one


OPEN = "breaker_opened_at = now(), probe_at = now()"
OPEN_FOR_LONG = "breaker_opened_at = now() - interval '61 minutes', probe_at = now()"
ASKED_FOR_TIME = "retry_after_until = now() + interval '1 minute'"


@pytest.mark.parametrize(
    ("columns", "paused", "counted"),
    [
        (
            "wake_at = now()",
            False,
            FlowGauges(paused=0, retry_after=0, breaker_open=0, breaker_open_for_an_hour=0),
        ),
        (
            "wake_at = now()",
            True,
            FlowGauges(paused=1, retry_after=0, breaker_open=0, breaker_open_for_an_hour=0),
        ),
        (
            ASKED_FOR_TIME,
            False,
            FlowGauges(paused=0, retry_after=1, breaker_open=0, breaker_open_for_an_hour=0),
        ),
        (
            "retry_after_until = now() - interval '1 second'",
            False,
            FlowGauges(paused=0, retry_after=0, breaker_open=0, breaker_open_for_an_hour=0),
        ),
        (OPEN, False, FlowGauges(paused=0, retry_after=0, breaker_open=1, breaker_open_for_an_hour=0)),
        (
            OPEN_FOR_LONG,
            False,
            FlowGauges(paused=0, retry_after=0, breaker_open=1, breaker_open_for_an_hour=1),
        ),
        (
            f"{OPEN_FOR_LONG}, {ASKED_FOR_TIME}",
            False,
            FlowGauges(paused=0, retry_after=1, breaker_open=0, breaker_open_for_an_hour=1),
        ),
        (
            f"{OPEN_FOR_LONG}, {ASKED_FOR_TIME}",
            True,
            FlowGauges(paused=1, retry_after=0, breaker_open=0, breaker_open_for_an_hour=0),
        ),
    ],
)
async def test_a_subscription_is_counted_once_by_why_its_deliveries_wait(
    observer: Connection,
    connect: Connect,
    endpoint: EndpointOf,
    columns: str,
    paused: bool,
    counted: FlowGauges,
) -> None:
    one = await with_flow(endpoint, columns)
    if paused:
        await one.seed.connection.execute(
            "UPDATE subscriptions SET paused_at = now() WHERE id = %s", [one.id]
        )
    assert await read_flow_gauges(await connect(Role.HEALTH_MONITOR)) == counted
    gauges = await read_gauges(observer)
    assert FlowGauges(**{name: getattr(gauges, name) for name in asdict(counted)}) == counted


@pytest.mark.parametrize("change", ["active = false", "deleted_at = now()"])
async def test_where_nothing_waits_or_may_start_anyway_no_reason_is_counted(
    observer: Connection, endpoint: EndpointOf, change: str
) -> None:
    """An endpoint that is gone is not reported as a breaker that stays open, nor is one without traffic."""
    one, other = await with_flow(endpoint, OPEN_FOR_LONG), await with_flow(endpoint, OPEN_FOR_LONG)
    assert (await read_flow_gauges(observer)).breaker_open_for_an_hour == 2
    await one.seed.connection.execute(f"UPDATE subscriptions SET {change} WHERE id = %s".encode(), [one.id])
    await one.seed.rewrite(
        "UPDATE webhook_delivery_sagas SET status = 'Completed' WHERE subscription_id = %s", [other.id]
    )
    assert set(asdict(await read_flow_gauges(observer)).values()) == {0}


@pytest.mark.parametrize(
    "trace", ["x", f"00-{'A' * 32}-{'b' * 16}-01", f"01-{'a' * 32}-{'b' * 16}-01", "a" * 56, ""]
)
async def test_the_database_takes_no_trace_that_is_none(seed: Seed, trace: str) -> None:
    with pytest.raises((errors.CheckViolation, errors.StringDataRightTruncation)):
        await seed.connection.execute(
            "INSERT INTO events (event_type, payload, traceparent) VALUES ('a', '{}', %s)", [trace]
        )
