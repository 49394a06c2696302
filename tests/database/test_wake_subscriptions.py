"""New sagas of requeues and bulk operations have the orchestrator look at their subscriptions, in one transaction."""

import asyncio

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.operations.bulk_steps import step_bulk_operation
from hooksaga.operations.requeue import requeue_dead_letters
from tests.conftest import Connect
from tests.database.bulk_rows import requeue_of, started
from tests.database.seed import Seed

pytestmark = pytest.mark.database


async def wakes(seed: Seed) -> dict[int, float | None]:
    """Seconds until each subscription is to be looked at."""
    rows = await seed.rows(
        "SELECT subscription_id, extract(epoch FROM wake_at - now())::float8 AS seconds FROM subscription_flow"
    )
    return {row["subscription_id"]: row["seconds"] for row in rows}


async def set_wakes(seed: Seed, value: str | None) -> None:
    await seed.rewrite("UPDATE subscription_flow SET wake_at = now() + %s::interval", [value])


@pytest.mark.parametrize("planned", [None, "1 hour"])
async def test_a_requeue_is_looked_at_now(seed: Seed, operator: Connection, planned: str | None) -> None:
    letters = [await seed.dead_letter() for _ in range(2)]
    untouched = await seed.subscription()
    await set_wakes(seed, planned)
    await requeue_dead_letters(operator, letters)
    found = await wakes(seed)
    kept = found.pop(untouched)
    assert kept is None if planned is None else kept is not None and kept > 3000
    assert len(found) == 2
    assert all(seconds is not None and seconds <= 0 for seconds in found.values())


async def test_what_is_due_earlier_stays_and_a_decision_made_before_is_void(
    seed: Seed, operator: Connection
) -> None:
    letter = await seed.dead_letter()
    await set_wakes(seed, "-1 minute")
    before = await seed.value("SELECT version FROM subscription_flow")
    await requeue_dead_letters(operator, [letter])
    ((seconds),) = (await wakes(seed)).values()
    assert seconds is not None
    assert seconds <= -60
    assert await seed.value("SELECT version FROM subscription_flow") == before + 1


async def test_a_repeated_requeue_wakes_nobody(seed: Seed, operator: Connection) -> None:
    letter = await seed.dead_letter()
    await requeue_dead_letters(operator, [letter])
    await set_wakes(seed, None)
    await requeue_dead_letters(operator, [letter])
    assert set((await wakes(seed)).values()) == {None}


async def test_a_step_of_a_bulk_operation_wakes_each_subscription_when_its_first_saga_is_due(
    seed: Seed, operator: Connection
) -> None:
    first, second = await seed.subscription(), await seed.subscription()
    for subscription in (first, first, second):
        await seed.dead_letter(subscription)
    await set_wakes(seed, None)
    await started(operator, requeue_of(rate=0.5))
    step = await step_bulk_operation(operator, horizon_seconds=60)
    due: dict[int, float] = {}
    for subscription, delay in zip(step.subscription_ids, step.delays, strict=True):
        due[subscription] = min(due.get(subscription, delay), delay)
    assert sorted(step.subscription_ids) == [first, first, second]
    assert await wakes(seed) == {one: pytest.approx(delay, abs=1) for one, delay in due.items()}


async def test_a_locked_subscription_is_not_waited_for(
    seed: Seed, operator: Connection, connect: Connect
) -> None:
    letter = await seed.dead_letter()
    await set_wakes(seed, None)
    somebody = await connect(Role.OWNER)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM subscription_flow FOR UPDATE")
        (requeued,) = await asyncio.wait_for(requeue_dead_letters(operator, [letter]), 5)
    assert requeued.created
    assert set((await wakes(seed)).values()) == {None}
