"""Filters of subscriptions in the database: one meaning for routing and for everything that asks the same question."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.event_input import EventDraft
from hooksaga.core.filters import FailedCondition
from hooksaga.core.models import SubscriptionChange
from hooksaga.core.routing import Reason
from hooksaga.operations.bulk_operations import count_bulk_operation
from hooksaga.operations.explain import Routing, explain_event
from hooksaga.operations.match_events import match_events
from hooksaga.operations.subscription_health import read_missed
from hooksaga.operations.subscriptions import change_subscription
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.bulk_rows import ANYBODY, backfill_of, started, step_until_nothing_is_left
from tests.database.seed import Seed, receivers

GERMAN: dict[str, Any] = {"country": ["DE"]}
DEAR: dict[str, Any] = {"total": [{"numeric": [">", 100]}]}


async def set_filter(seed: Seed, subscription_id: int, wanted: dict[str, Any] | None) -> None:
    await change_subscription(
        seed.connection,
        subscription_id,
        SubscriptionChange(filter=wanted),
        tenant_id=None,
        policy=AddressPolicy(),
        box=seed.box,
    )


async def routing_of(operator: Connection, seed: Seed, event_id: int) -> Routing:
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_id])
    return await explain_event(operator, webhook_id, tenant_id=None, default_attempt_limit=5)


async def test_an_event_goes_to_the_subscriptions_whose_filter_matches(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    every = await seed.subscription("a")
    german = await seed.subscription("a", filter=GERMAN)
    dear = await seed.subscription(["a.*", "*"], filter=DEAR)
    both = await seed.subscription("a", filter={**GERMAN, **DEAR})
    wanted = {
        await seed.event("a"): [every],
        await seed.event("a", attributes={"country": "DE"}): [every, german],
        await seed.event("a", attributes={"country": "FR", "total": 100.01}): [every, dear],
        await seed.event("a", attributes={"country": "DE", "total": 200}): [every, german, dear, both],
        await seed.event("a", attributes={"country": 5, "total": "200"}): [every],
    }
    await route_events(router)
    assert {event: await receivers(seed, event) for event in wanted} == wanted
    assert await seed.findings() == set()
    for event, matched in wanted.items():
        decisions = (await routing_of(operator, seed, event)).decisions
        assert sorted(one.subscription_id for one in decisions if one.matched) == matched
        assert {one.reason for one in decisions if not one.matched} <= {Reason.FILTERED}


async def test_explain_names_the_condition_that_the_router_saw(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription = await seed.subscription("a", filter={**GERMAN, **DEAR})
    event = await seed.event("a", attributes={"country": "DE", "total": 50})
    await route_events(router)
    await set_filter(seed, subscription, GERMAN)
    (decision,) = (await routing_of(operator, seed, event)).decisions
    assert decision.reason is Reason.FILTERED
    assert decision.failed_condition == FailedCondition("total", DEAR["total"], Decimal(50))
    assert decision.then is not None
    assert (decision.then.filter, decision.now.filter) == (json.dumps({**GERMAN, **DEAR}), json.dumps(GERMAN))
    assert await seed.findings() == set()


async def test_a_changed_filter_is_routed_from_then_on(router: Connection, seed: Seed) -> None:
    subscription = await seed.subscription("a")
    taken: list[bool] = []
    for wanted in (None, GERMAN, DEAR, None):
        await set_filter(seed, subscription, wanted)
        event = await seed.event("a", attributes={"country": "DE"})
        await route_events(router)
        taken.append(await receivers(seed, event) == [subscription])
    assert taken == [True, True, False, True]
    assert await seed.findings() == set()


async def test_a_wide_event_is_filtered_in_each_part(router: Connection, seed: Seed) -> None:
    filters = [GERMAN, DEAR, None]
    made = [await seed.subscription("a", filter=filters[number % 3]) for number in range(12)]
    event = await seed.event("a", attributes={"country": "DE"})
    while (await route_events(router, wide_from=4, part_size=2)).events:
        pass
    assert await receivers(seed, event) == [one for number, one in enumerate(made) if number % 3 != 1]
    assert await seed.findings() == set()


async def test_a_test_event_ignores_the_filter(router: Connection, operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription("a", filter=GERMAN)
    await seed.subscription("a")
    (event,) = await seed.accept(EventDraft("a", "1", test_subscription_id=subscription))
    await route_events(router)
    assert await receivers(seed, event.id) == [subscription]
    assert await seed.findings() == set()


async def test_one_poisoned_filter_does_not_stop_its_neighbours(router: Connection, seed: Seed) -> None:
    """No API call stores one; a path that raises errors by itself is only false."""
    poisoned = await seed.subscription("a", filter=GERMAN)
    healthy = await seed.subscription("a", filter=GERMAN)
    paths = ["$.a.double() > 1", "strict $.b.c.d == 1", "$", "1 / 0 == 1", '$.country.datetime() == "x"']
    events: list[int] = []
    for path in paths:
        await seed.rewrite("UPDATE subscriptions SET filter_path = %s WHERE id = %s", [path, poisoned])
        events.append(await seed.event("a", attributes={"country": "DE", "a": "x"}))
        await route_events(router)
    assert [await receivers(seed, event) for event in events] == [[healthy]] * len(paths)


async def test_a_backfill_sends_the_events_that_the_filter_matches(operator: Connection, seed: Seed) -> None:
    countries = ["DE", "FR", None, "DE"]
    events = [await seed.event("a", attributes={"country": one} if one else None) for one in countries]
    await route_events(seed.connection)
    for event_types in (["a"], ["*"]):
        subscription = await seed.subscription(event_types, filter=GERMAN)
        backfill = backfill_of(subscription, since=datetime.now(UTC) - timedelta(hours=1))
        assert (await count_bulk_operation(operator, backfill, ANYBODY)).matched == 2
        operation = await started(operator, backfill)
        assert operation.matched == 2
        assert await step_until_nothing_is_left(operator) == 2
        taken = [event for event in events if subscription in await receivers(seed, event)]
        assert taken == [events[0], events[3]]
    assert await seed.findings() == set()


async def test_missed_events_are_those_that_the_filter_matches(connect: Connect, seed: Seed) -> None:
    subscription = await seed.subscription("a", filter=GERMAN)
    await seed.event("a")
    await route_events(seed.connection)
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    await seed.connection.execute(
        "UPDATE subscription_health SET disabled_at = now(), disabled_reason = 'failing',"
        " disabled_failing_since = now() - interval '1 hour'"
    )
    for country in ("DE", "FR", "DE"):
        await seed.event("a", attributes={"country": country})
    await route_events(seed.connection)
    found = await read_missed(await connect(Role.SUBSCRIPTIONS), subscription, tenant_id=None)
    assert found is not None
    assert found.events == 2


async def test_an_earlier_event_that_the_filter_leaves_out_is_not_waited_for(seed: Seed) -> None:
    subscription = await seed.subscription("a", filter=GERMAN, ordered=True)
    await seed.event("a", attributes={"country": "FR"})
    later = await seed.event("a", attributes={"country": "DE"})
    asked = "SELECT earlier_event_waits(%s, %s, '')"
    assert await seed.value(asked, [subscription, later]) is False
    assert await seed.value(asked, [subscription, later + 1]) is True


async def test_the_audit_finds_a_saga_that_a_filter_did_not_leave_out(router: Connection, seed: Seed) -> None:
    await seed.subscription("a", filter=GERMAN)
    event = await seed.event("a", attributes={"country": "DE"})
    await route_events(router)
    assert await seed.findings() == set()
    await seed.rewrite("DELETE FROM webhook_delivery_sagas WHERE event_id = %s", [event])
    assert await seed.findings() == {"matching_subscription_without_saga"}


async def test_the_audit_compares_what_routing_reads(seed: Seed) -> None:
    await seed.subscription("a", filter=GERMAN)
    assert await seed.findings() == set()
    await seed.connection.execute("UPDATE subscription_patterns SET filtered = false")
    assert await seed.findings() == {"routing_index_wrong"}


@pytest.mark.parametrize("columns", ["filter = '{}'", "filter_path = '$'"])
async def test_a_filter_is_stored_with_its_compiled_form(seed: Seed, columns: str) -> None:
    await seed.subscription("a")
    with pytest.raises(errors.CheckViolation, match="filter_is_compiled"):
        await seed.connection.execute(f"UPDATE subscriptions SET {columns}".encode())


async def test_recent_events_are_compared_with_a_filter_or_another(operator: Connection, seed: Seed) -> None:
    subscription = await seed.subscription(["a", "b.*"], filter=GERMAN)
    await seed.event("c", attributes={"country": "DE"})
    await seed.event("a", attributes={"country": "DE"}, tenant_id="acme")
    await seed.accept(EventDraft("a", "1", test_subscription_id=subscription))
    await seed.event("a", attributes={"country": "DE"})
    await seed.event("b.c", attributes={"country": "FR", "total": 200})
    found = await match_events(operator, subscription, tenant_id=None, last=10)
    assert (found.filter, [event.matches for event in found.events]) == (GERMAN, [False, True])
    assert found.events[0].failed_condition == FailedCondition("country", ["DE"], "FR")
    tried = await match_events(operator, subscription, tenant_id="default", wanted=DEAR, last=10)
    assert [event.matches for event in tried.events] == [True, False]
    newest = await match_events(operator, subscription, tenant_id=None, last=1)
    assert [event.event_type for event in newest.events] == ["b.c"]
    every = await seed.subscription(["*"])
    assert [one.matches for one in (await match_events(operator, every, tenant_id=None, last=9)).events] == [
        True
    ] * 3
