"""The age of the oldest due saga: what an alarm looks at, so nothing waiting is null and never zero."""

from hooksaga.operations.inspect import read_stats
from tests.database.seed import Seed


async def test_nothing_waiting_has_no_age(seed: Seed) -> None:
    assert (await read_stats(seed.connection)).oldest_due_seconds is None


async def test_a_saga_that_is_not_due_yet_is_zero_old(seed: Seed) -> None:
    saga_id = await seed.saga()
    await seed.connection.execute(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() + interval '1 hour' WHERE id = %s",
        [saga_id],
    )
    assert (await read_stats(seed.connection)).oldest_due_seconds == 0


async def test_the_oldest_due_saga_gives_the_age(seed: Seed) -> None:
    saga_id = await seed.saga()
    await seed.connection.execute(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() - interval '90 seconds' WHERE id = %s",
        [saga_id],
    )
    stats = await read_stats(seed.connection)
    assert stats.oldest_due_seconds is not None
    assert 90 <= stats.oldest_due_seconds < 150
    assert (stats.sagas_waiting, stats.sagas_due) == (1, 1)
