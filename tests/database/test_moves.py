"""Every state with every trigger, as the state machine decides and as the database sees it.

What core/saga.py allows, the guards have to let through as it is, and what it refuses they have to refuse too,
whoever asks: here the owner asks.
"""

import itertools
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from psycopg import errors

from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import (
    SAGA_MOVES,
    Due,
    End,
    IllegalMove,
    JobFailed,
    JobSucceeded,
    RetryPolicy,
    Saga,
    SagaStatus,
    Trigger,
    decide,
)
from tests.database.seed import Seed
from tests.faults.promises import Promise

ENDINGS = [ErrorCode.CANCELED, ErrorCode.DISCARDED, ErrorCode.EXPIRED, ErrorCode.ERASED]
TRIGGERS: list[Trigger] = [
    Due(True),
    Due(False),
    JobSucceeded(),
    JobFailed("http_503"),
    JobFailed("http_503", is_probe=True),
    *map(End, ENDINGS),
]
LIMITS = {"attempts left": 5, "none left": 1}
"""A saga that waits for a retry has used one attempt."""


def wanted(saga: Saga, trigger: Trigger, policy: RetryPolicy) -> Saga:
    """The row that the trigger is after, whether or not the saga may go there."""
    if isinstance(trigger, JobSucceeded):
        return replace(saga, status=SagaStatus.COMPLETED, attempt_count=saga.attempt_count + 1)
    if isinstance(trigger, JobFailed):
        attempts = saga.attempt_count + 1
        end = SagaStatus.DEAD_LETTERED if attempts >= policy.max_retry_limit else SagaStatus.PENDING_RETRY
        return replace(saga, status=end, attempt_count=attempts, final_error_code=trigger.error_code)
    if trigger == Due(True) and saga.attempt_count < policy.max_retry_limit:
        return replace(saga, status=SagaStatus.IN_PROGRESS)
    return replace(saga, status=SagaStatus.DEAD_LETTERED, final_error_code="canceled")


async def saga_in(seed: Seed, status: SagaStatus) -> Saga:
    saga_id = await seed.saga(status)
    row = await seed.row("SELECT * FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    return Saga(saga_id, status, row["attempt_count"], row["next_attempt_at"], row["final_error_code"])


async def is_taken(seed: Seed, saga: Saga) -> bool:
    """Whether the database takes the row."""
    try:
        await seed.connection.execute(
            "UPDATE webhook_delivery_sagas SET status = %s, attempt_count = %s, next_attempt_at = %s,"
            " final_error_code = %s WHERE id = %s",
            [saga.status, saga.attempt_count, saga.next_attempt_at, saga.final_error_code, saga.id],
        )
    except errors.Error as error:
        if error.sqlstate == "HS001":
            return False
        raise
    return True


def decided(saga: Saga, trigger: Trigger, policy: RetryPolicy, now: datetime) -> Saga | None:
    try:
        return decide(saga, trigger, policy, now)
    except IllegalMove:
        return None


@pytest.mark.guarantee(
    Promise.GUARDED,
    "every saga state with every trigger",
    "what the state machine allows taken, the rest refused",
)
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize(("status", "trigger"), list(itertools.product(SagaStatus, TRIGGERS)), ids=str)
async def test_the_guards_take_what_is_decided_and_refuse_what_is_not(
    seed: Seed, status: SagaStatus, trigger: Trigger, limit: int
) -> None:
    policy = RetryPolicy(max_retry_limit=limit)
    before = await saga_in(seed, status)
    after = decided(before, trigger, policy, before.next_attempt_at + timedelta(seconds=1))
    if after is not None:
        assert after.status in SAGA_MOVES[status]
        assert await is_taken(seed, after)
        assert await seed.status_of(before.id) is after.status
    elif wanted(before, trigger, policy) != before:
        assert not await is_taken(seed, wanted(before, trigger, policy))
        assert await seed.status_of(before.id) is status


@pytest.mark.parametrize("status", [SagaStatus.IN_PROGRESS, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED])
async def test_a_second_start_gets_no_job(seed: Seed, status: SagaStatus) -> None:
    """The one illegal trigger that would leave the state as it is: what it is after is a job."""
    saga = await saga_in(seed, status)
    with pytest.raises(errors.Error) as refused:
        await seed.connection.execute(
            "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
            " SELECT id, subscription_id, attempt_count + 1, now() FROM webhook_delivery_sagas WHERE id = %s",
            [saga.id],
        )
    assert refused.value.sqlstate in ("HS001", errors.UniqueViolation.sqlstate)
