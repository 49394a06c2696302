"""A failed probe never uses up the last attempt, so the next attempt has its number again.

Whatever reads the attempts of a delivery takes them for those of one delivery.
"""

from datetime import timedelta
from functools import partial

import pytest

from hooksaga.adapters.database import Connection
from hooksaga.operations.bulk_operations import count_bulk_operation, show_bulk_operation
from hooksaga.operations.prune import Pruning, prune, prune_batch
from tests.database.bulk_rows import ANYBODY, resend_of, started, step_until_nothing_is_left
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import POLICY

PROBES = 3


async def findings(one: Endpoint) -> set[str]:
    """All but that of the other deliveries, which time was moved past."""
    return await one.seed.findings() - {"saga_waits_too_long"}


async def probe(one: Endpoint, saga_id: int, error_code: str | None) -> None:
    await one.pass_time(3600)
    assert await one.started() == [saga_id]
    await one.answer([saga_id], error_code)


@pytest.fixture
async def probed(endpoint: EndpointOf) -> tuple[Endpoint, int]:
    """An endpoint with a delivery whose only attempt was made three times, each as a probe that failed."""
    one = await endpoint(1000)
    await one.start()
    opening = await one.events(POLICY.breaker_failures)
    assert await one.started() == opening
    await one.answer(opening, "http_500")
    await one.seed.rewrite("UPDATE subscriptions SET max_retry_limit = 1 WHERE id = %s", [one.id])
    (saga_id,) = await one.events(1)
    for _ in range(PROBES):
        await probe(one, saga_id, "http_500")
        assert await findings(one) == set()
    return one, saga_id


async def test_the_audit_knows_them(probed: tuple[Endpoint, int]) -> None:
    one, saga_id = probed
    await probe(one, saga_id, None)
    query = "SELECT attempt_number FROM webhook_delivery_jobs WHERE saga_id = %s"
    assert [row["attempt_number"] for row in await one.seed.rows(query, [saga_id])] == [1] * (PROBES + 1)
    assert await findings(one) == set()


async def test_the_delivery_is_resent_once(probed: tuple[Endpoint, int], operator: Connection) -> None:
    one, saga_id = probed
    await probe(one, saga_id, None)
    wanted = resend_of(subscription_id=one.id, status="Completed")
    assert (await count_bulk_operation(operator, wanted, ANYBODY)).matched == 1
    operation = await started(operator, wanted)
    assert await step_until_nothing_is_left(operator) == 1
    rows = await one.seed.rows("SELECT resent_from FROM webhook_delivery_sagas WHERE resent_from IS NOT NULL")
    assert [row["resent_from"] for row in rows] == [saga_id]
    ended = await show_bulk_operation(operator, operation.id, tenant_id=None)
    assert (ended.status, ended.done, ended.skipped) == ("Completed", 1, 0)


async def test_retention_deletes_them_with_their_delivery(
    probed: tuple[Endpoint, int], operator: Connection
) -> None:
    one, saga_id = probed
    await probe(one, saga_id, None)
    await one.seed.make_old(saga_id, 40)
    pruned = await prune(partial(prune_batch, operator, Pruning(timedelta(days=30), batch=1)))
    assert (pruned.sagas, pruned.jobs) == (1, PROBES + 1)
    assert await findings(one) == set()
