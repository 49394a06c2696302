"""Test events: one subscription receives them, and nothing else takes them for events of its own."""

from datetime import UTC, datetime, timedelta

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.event_input import EventDraft
from hooksaga.core.routing import Reason
from hooksaga.operations.audit import audit
from hooksaga.operations.bulk_operations import count_bulk_operation
from hooksaga.operations.explain import explain_event
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.bulk_rows import ANYBODY, backfill_of
from tests.database.seed import Seed, receivers


def for_test(subscription_id: int, event_type: str = "a.b", tenant_id: str = "default") -> EventDraft:
    return EventDraft(event_type, "{}", tenant_id, test_subscription_id=subscription_id)


async def test_one_subscription_receives_it_among_others(
    router: Connection, connect: Connect, seed: Seed
) -> None:
    first, second, third = [await seed.subscription(types) for types in (["a.b"], ["a.*", "a.b"], ["*"])]
    tests = await seed.accept(for_test(second), for_test(third), for_test(second, tenant_id="acme"))
    usual = await seed.event("a.b")
    await route_events(router)
    found = [await receivers(seed, event.id) for event in tests]
    assert found == [[second], [third], []]
    assert await receivers(seed, usual) == [first, second, third]
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []
    operator = await connect(Role.ADMIN)
    routing = await explain_event(operator, tests[0].webhook_id, tenant_id=None, default_attempt_limit=5)
    assert routing.test_subscription_id == second
    assert {one.subscription_id: one.reason for one in routing.decisions} == {
        second: None,
        first: Reason.TEST_OF_ANOTHER,
        third: Reason.TEST_OF_ANOTHER,
    }


async def test_a_wide_type_costs_a_test_nothing_of_the_others(router: Connection, seed: Seed) -> None:
    wanted = [await seed.subscription("a.b") for _ in range(6)]
    (event,) = await seed.accept(for_test(wanted[4]))
    (routed,) = (await route_events(router, wide_from=2, part_size=2)).events
    assert (routed.id, routed.subscription_ids, routed.whole) == (event.id, [wanted[4]], True)


async def test_one_that_was_switched_off_in_between_does_not_receive_it(
    router: Connection, seed: Seed
) -> None:
    subscription = await seed.subscription("a.b")
    (event,) = await seed.accept(for_test(subscription))
    await seed.connection.execute("UPDATE subscriptions SET active = false")
    await route_events(router)
    assert await receivers(seed, event.id) == []
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []


@pytest.mark.parametrize("event_types", [["a.b"], ["a.*"], ["*"]])
async def test_no_backfill_takes_it(connect: Connect, seed: Seed, event_types: list[str]) -> None:
    tested = await seed.subscription("a.b")
    await seed.accept(for_test(tested))
    await route_events(seed.connection)
    late = await seed.subscription(event_types)
    backfill = backfill_of(late, since=datetime.now(UTC) - timedelta(hours=1))
    assert (await count_bulk_operation(await connect(Role.ADMIN), backfill, ANYBODY)).matched == 0


async def test_an_ordered_subscription_does_not_wait_for_anothers_test(seed: Seed) -> None:
    ordered, other = await seed.subscription("a.b", ordered=True), await seed.subscription("a.b")
    (test,) = await seed.accept(for_test(other))
    event_id = await seed.event("a.b")
    waits = "SELECT earlier_event_waits(%s, %s, '')"
    assert not await seed.value(waits, [ordered, event_id])
    assert await seed.value(waits, [other, event_id])
    assert test.id < event_id
