"""A bulk operation tells what became of its deliveries, and stops by itself when nearly all of them fail."""

import pytest

from hooksaga.adapters.database import Connection
from hooksaga.operations.bulk_operations import BulkOperation, list_bulk_operations, show_bulk_operation
from hooksaga.operations.bulk_steps import step_bulk_operation
from tests.database import orchestrate
from tests.database.bulk_rows import dead_letters, let_time_pass, requeue_of, started
from tests.database.seed import LAST_ATTEMPT, POLICY, Seed

pytestmark = pytest.mark.usefixtures("audited")


async def now(operator: Connection, operation: BulkOperation) -> BulkOperation:
    return await show_bulk_operation(operator, operation.id, tenant_id=None)


async def steps(operator: Connection, seed: Seed, sagas: int) -> list[int]:
    """Start so many sagas, which are due."""
    step = await step_bulk_operation(operator, horizon_seconds=sagas / 10 - 0.05)
    assert len(step.saga_ids) == sagas
    await let_time_pass(seed, sagas / 10)
    return step.saga_ids


async def test_outcomes_are_told_of_the_operation_and_of_each_subscription(
    operator: Connection, seed: Seed
) -> None:
    subscription = await seed.subscription()
    await dead_letters(seed, subscription, 6)
    operation = await started(operator, requeue_of(rate=10))
    delivered, retrying, dead, *_ = await steps(operator, seed, 5)
    for saga_id, error_code, policy in (
        (delivered, None, POLICY),
        (retrying, "http_503", POLICY),
        (dead, "http_503", LAST_ATTEMPT),
    ):
        await seed.finish(await seed.start(saga_id), error_code)
        await orchestrate.apply_results(seed.connection, policy)
    shown = await now(operator, operation)
    (listed,) = await list_bulk_operations(operator, tenant_id=None)
    for told in (shown, listed, *shown.lanes):
        assert (told.done, told.delivered, told.failed, told.under_way, told.retrying) == (5, 1, 1, 3, 1)
    assert shown.stop_reason is None


async def fail(seed: Seed, sagas: list[int]) -> None:
    for saga_id in sagas:
        await seed.finish(await seed.start(saga_id), "http_404")
        await orchestrate.apply_results(seed.connection, POLICY)


async def test_an_operation_whose_deliveries_all_fail_stops_by_itself(
    operator: Connection, seed: Seed
) -> None:
    subscription = await seed.subscription(circuit_breaker=False)
    await dead_letters(seed, subscription, 20)
    operation = await started(operator, requeue_of(rate=10))
    sagas = await steps(operator, seed, 11)
    await fail(seed, sagas[:9])
    assert await steps(operator, seed, 1)
    await fail(seed, sagas[9:10])
    step = await step_bulk_operation(operator, horizon_seconds=5)
    assert (step.operation_id, step.status, step.saga_ids) == (operation.id, "Stopped", [])
    stopped = await now(operator, operation)
    assert (stopped.status, stopped.stop_reason, stopped.done) == ("Stopped", "failing", 12)
    assert stopped.finished_at is not None
    assert (await step_bulk_operation(operator, horizon_seconds=5)).operation_id is None
    again = await started(operator, requeue_of(rate=10))
    assert again.matched == 8


async def test_an_operation_that_delivers_goes_on_beside_a_failing_endpoint(
    operator: Connection, seed: Seed
) -> None:
    subscription = await seed.subscription(circuit_breaker=False)
    await dead_letters(seed, subscription, 20)
    await started(operator, requeue_of(rate=10))
    delivered, also, *failing = await steps(operator, seed, 12)
    for saga_id in (delivered, also):
        await seed.finish(await seed.start(saga_id))
        await orchestrate.apply_results(seed.connection, POLICY)
    await fail(seed, failing)
    assert len(failing) == 10
    assert (await step_bulk_operation(operator, horizon_seconds=0.5)).saga_ids
