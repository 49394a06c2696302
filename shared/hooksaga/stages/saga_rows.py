"""Row types of the orchestrator's queries: sagas locked for a move, and committed moves."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

import msgspec

from hooksaga.core.errors import RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.flow import Flow, Result
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
    slow: the lane of the job. has_due: the subscription has more that is due. made_room: and this result may
    have made room for it.
    wake_at: when the subscription is to be looked at, where this result has changed that. breaker_changed: whether this
    batch of results has opened or closed the subscription's circuit breaker.
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
    max_retry_limit: int = 0
    previous_status: SagaStatus | None = None
    traceparent: str | None = None
    end_to_end_ms: float | None = None
    slow: bool = False
    has_due: bool = False
    made_room: bool = False
    wake_at: datetime | None = None
    breaker_changed: bool = False

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
    """cause: the error code of End, or `subscription_inactive`."""

    cause: str


class FinishedJob(LockedSaga, frozen=True):
    """A result that was not applied yet. flow: of its subscription, a ResultFlow in JSON, in one of its results."""

    job_id: int
    job_status: str
    error_code: str | None
    retry_after_seconds: int | None
    worker_id: str | None
    leased_at: datetime | None
    duration_ms: int | None
    flow: str | None

    def trigger(self, flow: Flow) -> JobSucceeded | JobFailed:
        """Return what the result means for the saga. flow: of its subscription."""
        if self.job_status == JobStatus.COMPLETED:
            return JobSucceeded()
        is_probe = flow.breaker_opened_at is not None and flow.probe_saga_id == self.id
        return JobFailed(self.error_code or "internal_error", self.retry_after_seconds, is_probe)

    def refused_row(self) -> RefusedRow:
        return replace(super().refused_row(), job_id=self.job_id)

    def result(self) -> Result:
        """Return what the result means for the flow of its subscription."""
        error_code = None if self.job_status == JobStatus.COMPLETED else self.error_code or "internal_error"
        return Result(self.id, error_code, self.retry_after_seconds, self.duration_ms or 0, self.leased_at)


class MovedRow(msgspec.Struct, frozen=True):
    saga_id: int
    job_id: int | None = None
    dead_letter_id: int | None = None
