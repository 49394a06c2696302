"""The state machine of a delivery: one saga per event and subscription, one job per attempt.

Routing or a requeue creates a saga as Pending. When it is due, the orchestrator creates one job for it, and the saga
is InProgress until that job ends. A Completed job ends the saga as Completed. A Failed job uses one attempt: with
attempts left, the saga waits as PendingRetry until next_attempt_at; otherwise it becomes DeadLettered in one step. A
waiting saga also becomes DeadLettered when its limit is lowered below the used attempts, when its subscription becomes
inactive, when an operator cancels or discards it, when it has waited for too long, or when its event is erased. A
failed attempt of an erased event is the last: there is nothing left to send. Completed and DeadLettered are
final: requeueing a dead letter starts another saga and does not change this one.

A job is Pending until a worker claims it, Leased while the worker holds the lease, and Completed or Failed after the
worker has reported. An expired or released lease makes the job Pending again: the same row, the same attempt. A job
that lost too many leases becomes Failed, so that a payload that kills workers ends as a dead letter.

Everything here is pure: no clock, no randomness, no I/O. `SAGA_MOVES` and `JOB_MOVES` are the same tables that
the database guards (sql/schema/14_guards.sql); a test tries every pair against both.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from hooksaga.core.backoff import retry_delay_seconds
from hooksaga.core.outcomes import ErrorCode


class SagaStatus(StrEnum):
    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    PENDING_RETRY = "PendingRetry"
    COMPLETED = "Completed"
    DEAD_LETTERED = "DeadLettered"


class JobStatus(StrEnum):
    PENDING = "Pending"
    LEASED = "Leased"
    COMPLETED = "Completed"
    FAILED = "Failed"


SAGA_MOVES: dict[SagaStatus, frozenset[SagaStatus]] = {
    SagaStatus.PENDING: frozenset({SagaStatus.IN_PROGRESS, SagaStatus.DEAD_LETTERED}),
    SagaStatus.IN_PROGRESS: frozenset(
        {SagaStatus.COMPLETED, SagaStatus.PENDING_RETRY, SagaStatus.DEAD_LETTERED}
    ),
    SagaStatus.PENDING_RETRY: frozenset({SagaStatus.IN_PROGRESS, SagaStatus.DEAD_LETTERED}),
    SagaStatus.COMPLETED: frozenset(),
    SagaStatus.DEAD_LETTERED: frozenset(),
}

JOB_MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.LEASED}),
    JobStatus.LEASED: frozenset({JobStatus.PENDING, JobStatus.COMPLETED, JobStatus.FAILED}),
    JobStatus.COMPLETED: frozenset(),
    JobStatus.FAILED: frozenset(),
}


class IllegalMove(Exception):
    """Error for a transition that the saga's state does not allow. Nothing has changed."""


class Saga(msgspec.Struct, frozen=True):
    """State of a saga for a decision. next_attempt_at is timezone-aware."""

    id: int
    status: SagaStatus
    attempt_count: int
    next_attempt_at: datetime
    final_error_code: str | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits for one subscription. max_retry_limit counts all attempts: 5 means at most 5 POSTs. breaker_failures: so
    many failures in a row open the circuit breaker; probe_seconds: the wait before the first probe."""

    max_retry_limit: int = 5
    base_delay_seconds: float = 30
    max_delay_seconds: float = 3600
    jitter: float = 0.1
    breaker_failures: int = 10
    probe_seconds: float = 5


class Due(msgspec.Struct, frozen=True):
    """Trigger: the saga is due. deliverable: the subscription is active and verified."""

    deliverable: bool


class JobSucceeded(msgspec.Struct, frozen=True):
    """Trigger: the saga's job ended as Completed."""


class JobFailed(msgspec.Struct, frozen=True):
    """Trigger: the saga's job ended as Failed. retry_after_seconds: from the receiver's Retry-After, if any.

    is_probe: it was the probe of an open circuit breaker, which never uses up the last attempt.
    """

    error_code: str
    retry_after_seconds: float | None = None
    is_probe: bool = False


class End(msgspec.Struct, frozen=True):
    """Trigger: the waiting saga ends without another attempt: canceled, discarded, expired or erased."""

    error_code: ErrorCode = ErrorCode.CANCELED


Trigger = Due | JobSucceeded | JobFailed | End


def decide(saga: Saga, trigger: Trigger, policy: RetryPolicy, now: datetime) -> Saga:
    """Return the saga after the trigger.

    Raises IllegalMove when the saga's state does not allow it. Only a Due saga whose answer is InProgress
    gets a job; it is the caller who makes it, in the same transaction.
    """
    match trigger:
        case Due(deliverable):
            return _start_attempt(saga, deliverable, policy, now)
        case JobSucceeded():
            return _move(saga, SagaStatus.COMPLETED, attempt_count=saga.attempt_count + 1)
        case JobFailed():
            return _after_failure(saga, trigger, policy, now)
        case End(error_code):
            return _dead_letter_waiting(saga, error_code)
        case _:
            assert_never(trigger)


def _start_attempt(saga: Saga, deliverable: bool, policy: RetryPolicy, now: datetime) -> Saga:
    if saga.next_attempt_at > now:
        raise IllegalMove(f"saga {saga.id} is not due before {saga.next_attempt_at.isoformat()}")
    if not deliverable:
        return _dead_letter_waiting(saga, saga.final_error_code or ErrorCode.SUBSCRIPTION_INACTIVE)
    if saga.attempt_count >= policy.max_retry_limit:
        return _dead_letter_waiting(saga, saga.final_error_code)
    return _move(saga, SagaStatus.IN_PROGRESS)


def _after_failure(saga: Saga, failure: JobFailed, policy: RetryPolicy, now: datetime) -> Saga:
    if saga.status is not SagaStatus.IN_PROGRESS:
        raise IllegalMove(f"saga {saga.id} is {saga.status}: no job of it can have failed now")
    attempts = saga.attempt_count + 1
    error_code = failure.error_code
    if error_code == ErrorCode.SUBSCRIPTION_INACTIVE:  # nothing was sent: the last attempt is an earlier one
        error_code = saga.final_error_code or error_code
    elif failure.is_probe and attempts == policy.max_retry_limit and error_code != ErrorCode.ERASED:
        attempts = saga.attempt_count
    if attempts >= policy.max_retry_limit or error_code == ErrorCode.ERASED:
        return _move(saga, SagaStatus.DEAD_LETTERED, attempt_count=attempts, final_error_code=error_code)
    wait = retry_delay_seconds(
        saga.id,
        max(1, attempts),
        base_delay_seconds=policy.base_delay_seconds,
        max_delay_seconds=policy.max_delay_seconds,
        jitter=policy.jitter,
        retry_after_seconds=failure.retry_after_seconds,
    )
    return _move(
        saga,
        SagaStatus.PENDING_RETRY,
        attempt_count=attempts,
        next_attempt_at=now + timedelta(seconds=wait),
        final_error_code=error_code,
    )


def _dead_letter_waiting(saga: Saga, error_code: str | None) -> Saga:
    """End a waiting saga. A saga InProgress has a running job and cannot be ended from outside."""
    if saga.status is SagaStatus.IN_PROGRESS:
        raise IllegalMove(f"saga {saga.id} is in progress: only its job's result can end it")
    return _move(saga, SagaStatus.DEAD_LETTERED, final_error_code=error_code)


def _move(
    saga: Saga,
    status: SagaStatus,
    *,
    attempt_count: int | None = None,
    next_attempt_at: datetime | None = None,
    final_error_code: str | None = None,
) -> Saga:
    """final_error_code None keeps the last failure: it says what went wrong before."""
    if status not in SAGA_MOVES[saga.status]:
        raise IllegalMove(f"saga {saga.id} cannot go from {saga.status} to {status}")
    return Saga(
        id=saga.id,
        status=status,
        attempt_count=saga.attempt_count if attempt_count is None else attempt_count,
        next_attempt_at=next_attempt_at or saga.next_attempt_at,
        final_error_code=final_error_code or saga.final_error_code,
    )
