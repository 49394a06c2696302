"""Row types of the orchestrator's queries: sagas locked for a move, and committed moves."""

from datetime import datetime
from uuid import UUID

import msgspec

from hooksaga.core.errors import RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.saga import (
    JobFailed,
    JobStatus,
    JobSucceeded,
    RetryPolicy,
    Saga,
    SagaStatus,
)
from hooksaga.core.trace import correlation_id_of


class SagaMoved(msgspec.Struct, frozen=True):
    """One saga's committed move. job_id is the job that was created, or whose result was applied.

    end_to_end_ms: milliseconds from the event's acceptance to its delivery; set on delivery, except for requeued sagas.
    """

    saga_id: int
    webhook_id: UUID
    subscription_id: int
    status: SagaStatus
    attempt_count: int
    next_attempt_at: datetime
    final_error_code: str | None
    job_id: int | None = None
    dead_letter_id: int | None = None
    worker_id: str | None = None
    lease_until: datetime | None = None
    max_retry_limit: int = 0
    previous_status: SagaStatus | None = None
    traceparent: str | None = None
    end_to_end_ms: float | None = None

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


class LockedSaga(msgspec.Struct, frozen=True):
    """A saga locked by this transaction, with its subscription's own limits (null: the defaults)."""

    id: int
    status: str
    attempt_count: int
    next_attempt_at: datetime
    final_error_code: str | None
    subscription_id: int
    webhook_id: UUID
    traceparent: str | None
    accepted_at: datetime | None
    max_retry_limit: int | None
    base_delay_seconds: float | None
    now: datetime

    def saga(self) -> Saga:
        return Saga(
            self.id,
            SagaStatus(self.status),
            self.attempt_count,
            self.next_attempt_at,
            self.final_error_code,
        )

    def refused_row(self) -> RefusedRow:
        """Return the report for a saga whose move the database rejects."""
        return RefusedRow(
            saga_id=self.id,
            subscription_id=self.subscription_id,
            event_id=event_id_text(self.webhook_id),
            correlation_id=correlation_id_of(self.webhook_id, self.traceparent),
        )

    def policy(self, defaults: RetryPolicy) -> RetryPolicy:
        if self.max_retry_limit is None and self.base_delay_seconds is None:
            return defaults
        return RetryPolicy(
            max_retry_limit=self.max_retry_limit or defaults.max_retry_limit,
            base_delay_seconds=self.base_delay_seconds or defaults.base_delay_seconds,
            max_delay_seconds=defaults.max_delay_seconds,
            jitter=defaults.jitter,
        )


class WaitingSaga(LockedSaga, frozen=True):
    deliverable: bool


class FinishedJob(LockedSaga, frozen=True):
    job_id: int
    job_status: str
    error_code: str | None
    retry_after_seconds: int | None
    worker_id: str | None
    lease_until: datetime | None

    def trigger(self) -> JobSucceeded | JobFailed:
        if self.job_status == JobStatus.COMPLETED:
            return JobSucceeded()
        return JobFailed(self.error_code or "internal_error", self.retry_after_seconds)


class MovedRow(msgspec.Struct, frozen=True):
    saga_id: int
    job_id: int | None = None
    dead_letter_id: int | None = None
