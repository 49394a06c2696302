"""Subscriptions with several event types and prefixes: routing, and everything that asks the same question."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.event_patterns import matching_patterns, patterns_of_type
from hooksaga.core.routing import Reason
from hooksaga.operations.bulk_operations import count_bulk_operation
from hooksaga.operations.explain import explain_event
from hooksaga.operations.subscription_health import read_missed
from hooksaga.operations.subscriptions import list_subscriptions
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.bulk_rows import ANYBODY, backfill_of, started, step_until_nothing_is_left
from tests.database.seed import Seed, receivers

TYPES = st.text("ab.", min_size=1, max_size=8) | st.sampled_from(["hooksaga.a", "hooksaga.a.b", "hooksaga"])
EVENT_TYPES = st.lists(
    TYPES | TYPES.map(lambda one: f"{one}.*") | st.sampled_from(["*", "hooksaga.*"]),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event_type=TYPES, event_types=EVENT_TYPES)
async def test_the_database_and_the_program_have_one_rule(
    seed: Seed, event_type: str, event_types: list[str]
) -> None:
    row = await seed.row(
        "SELECT patterns_of_type(%(type)s::varchar) AS patterns,"
        " %(types)s::varchar[] && patterns_of_type(%(type)s::varchar) AS matches",
        {"type": event_type, "types": event_types},
    )
    assert sorted(row["patterns"]) == sorted(set(patterns_of_type(event_type)))
    assert row["matches"] == bool(matching_patterns(event_types, event_type))


async def test_one_saga_however_many_match(router: Connection, operator: Connection, seed: Seed) -> None:
    every = await seed.subscription(["*"])
    several = await seed.subscription(["order.*", "order.paid", "*", "invoice.*"])
    await seed.subscription(["invoice.*", "order.created", "orders.*"])
    exact = await seed.subscription("order.paid")
    event_id = await seed.event("order.paid")
    routed = await route_events(router)
    assert await receivers(seed, event_id) == [every, several, exact]
    assert len(routed.saga_ids) == 3
    routing = await explain_event(
        operator, routed.events[0].webhook_id, tenant_id=None, default_attempt_limit=5
    )
    assert [(one.matched_by, one.reason) for one in routing.decisions] == [
        (["*"], None),
        (["order.*", "order.paid", "*"], None),
        (["order.paid"], None),
        ([], Reason.OTHER_EVENT_TYPE),
    ]
    assert await seed.findings() == set()


async def test_prefixes_of_a_tenant_are_its_own(router: Connection, seed: Seed) -> None:
    mine = await seed.subscription(["order.*"], tenant_id="acme")
    await seed.subscription(["order.*", "*"])
    event_id = await seed.event("order.paid.late", tenant_id="acme")
    await route_events(router)
    assert await receivers(seed, event_id) == [mine]


async def test_operational_events_are_for_those_that_name_them(connect: Connect, seed: Seed) -> None:
    await seed.subscription(["*"])
    named = [await seed.subscription(["*", "hooksaga.*"]), await seed.subscription(["hooksaga.a.*"])]
    monitor = await connect(Role.HEALTH_MONITOR)
    await monitor.execute(
        "INSERT INTO events (tenant_id, event_type, source, payload)"
        " VALUES ('default', 'hooksaga.a.b', 'hooksaga', '{}')"
    )
    (event,) = (await route_events(seed.connection)).events
    assert await receivers(seed, event.id) == named


async def test_a_dead_letter_is_told_to_a_prefix_and_not_to_everything(seed: Seed) -> None:
    await seed.subscription(["*"])
    await seed.dead_letter()
    assert await seed.value("SELECT count(*) FROM operational_outbox") == 0
    await seed.subscription(["hooksaga.delivery.*"])
    await seed.dead_letter()
    assert await seed.value("SELECT count(*) FROM operational_outbox") == 1


async def test_a_wide_event_takes_each_subscription_once_in_parts(router: Connection, seed: Seed) -> None:
    kinds = (["a.b"], ["a.*"], ["*", "a.b"], ["a.b", "a.*", "*"], ["a.c"])
    wanted = [await seed.subscription(list(kind)) for _ in range(3) for kind in kinds]
    wanted = [one for number, one in enumerate(wanted) if kinds[number % len(kinds)] != ["a.c"]]
    event_id = await seed.event("a.b")
    parts: list[int] = []
    while (routed := await route_events(router, wide_from=4, part_size=2)).events:
        parts.append(len(routed.saga_ids))
    assert await receivers(seed, event_id) == wanted
    assert parts == [2] * 6
    assert await seed.findings() == set()


async def test_changed_event_types_are_routed_from_then_on(router: Connection, seed: Seed) -> None:
    subscription = await seed.subscription(["a.*", "b"])
    await seed.connection.execute("UPDATE subscriptions SET event_types = '{b,c.*}', ordered = true")
    events = [await seed.event(event_type) for event_type in ("a.x", "b", "c.x")]
    await route_events(router)
    assert [await receivers(seed, event) for event in events] == [[], [subscription], [subscription]]
    keys = await seed.rows("SELECT ordering_key FROM webhook_delivery_sagas")
    assert keys == [{"ordering_key": ""}] * 2
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    assert await seed.value("SELECT count(*) FROM subscription_patterns") == 0
    assert await seed.findings() == set()


@pytest.mark.parametrize("wrong", ["{}", "{a,a}", "{a*}", "{{a,b},{c,d}}", "{'a b'}", "{NULL}", "{*.a}"])
async def test_the_database_refuses_other_event_types(seed: Seed, wrong: str) -> None:
    with pytest.raises(errors.CheckViolation):
        await seed.connection.execute(
            "INSERT INTO subscriptions (event_types, callback_url) VALUES (%s, 'https://a.example')", [wrong]
        )


async def test_the_list_holds_those_that_receive_a_type(seed: Seed) -> None:
    every, prefix, exact = [await seed.subscription(types) for types in (["*"], ["x", "a.*"], ["a.b"])]
    await seed.subscription(["a.c", "b.*"])
    found = await list_subscriptions(seed.connection, tenant_id=None, event_type="a.b")
    assert [one.id for one in found] == [exact, prefix, every]
    assert [(one.event_type, one.event_types) for one in found] == [
        ("a.b", ["a.b"]),
        (None, ["x", "a.*"]),
        (None, ["*"]),
    ]


@pytest.mark.parametrize("event_types", [["a.b", "b"], ["a.*", "b"], ["*"]])
async def test_a_backfill_sends_each_old_event_that_matches_once(
    operator: Connection, seed: Seed, event_types: list[str]
) -> None:
    older = [await seed.event(event_type) for event_type in ("a.b", "b", "a.b", "a.b.c", "c")]
    await seed.event("a.b", tenant_id="acme")
    await route_events(seed.connection)
    subscription = await seed.subscription(event_types)
    wanted = [
        event
        for event, event_type in zip(older, ("a.b", "b", "a.b", "a.b.c", "c"), strict=True)
        if matching_patterns(event_types, event_type)
    ]
    backfill = backfill_of(subscription, since=datetime.now(UTC) - timedelta(hours=1))
    assert (await count_bulk_operation(operator, backfill, ANYBODY)).matched == len(wanted)
    operation = await started(operator, backfill)
    assert (operation.matched, operation.filter["event_types"]) == (len(wanted), event_types)
    assert await step_until_nothing_is_left(operator) == len(wanted)
    assert await receivers(seed, older[0]) == [subscription]
    rows = await seed.rows("SELECT event_id AS id FROM webhook_delivery_sagas ORDER BY id")
    assert [row["id"] for row in rows] == wanted
    assert await seed.findings() == set()


@pytest.mark.parametrize(
    ("event_types", "missed"), [(["a.b"], 2), (["a.b", "a.c"], 3), (["a.*"], 3), (["*"], 4)]
)
async def test_what_a_disabled_subscription_missed_is_what_it_would_have_matched(
    connect: Connect, seed: Seed, event_types: list[str], missed: int
) -> None:
    subscription = await seed.subscription(event_types)
    await seed.event("a.b")
    await route_events(seed.connection)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    await seed.connection.execute(
        "UPDATE subscription_health SET disabled_at = now(), disabled_reason = 'failing',"
        " disabled_failing_since = now() - interval '1 hour'"
    )
    for event_type in ("a.b", "a.b", "a.c", "d"):
        await seed.event(event_type)
    await seed.event("a.b", tenant_id="acme")
    await route_events(seed.connection)
    found = await read_missed(await connect(Role.SUBSCRIPTIONS), subscription, tenant_id=None)
    assert found is not None
    assert found.events == missed


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM subscription_patterns WHERE pattern = 'a'",
        "UPDATE subscription_patterns SET ordered = true",
        "UPDATE subscription_patterns SET eligible_after_event = eligible_after_event + 1",
        "UPDATE subscription_patterns SET pattern = 'other' WHERE pattern = 'a'",
    ],
)
async def test_the_audit_compares_what_routing_reads(seed: Seed, damage: str) -> None:
    await seed.subscription(["a", "b.*"])
    await seed.subscription(["a"], verified=False)
    assert await seed.findings() == set()
    await seed.connection.execute(damage.encode())
    assert await seed.findings() == {"routing_index_wrong"}


async def test_a_saga_that_is_missing_for_a_prefix_is_a_breach(router: Connection, seed: Seed) -> None:
    await seed.subscription(["a.*"])
    await seed.event("a.b")
    await route_events(router)
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")
    assert await seed.findings() == {"matching_subscription_without_saga"}
