"""Row types of flow control: the flow and the settings of a subscription, and the columns in which they are written."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hooksaga.core.flow import MAX_IN_FLIGHT, MAX_WAIT_SECONDS, Flow, FlowSettings
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import RetryPolicy

LAST_ID = 2**63 - 1
SYSTEM_DEFAULTS = RetryPolicy()


class FlowKey(msgspec.Struct, frozen=True):
    """A flow row that a statement has locked or written."""

    subscription_id: int


class FlowRow(Flow, frozen=True, kw_only=True):
    """Flow of one subscription with the settings that limit it (null: the defaults), as of `now`."""

    subscription_id: int
    version: int
    deliverable: bool
    paused_at: datetime | None
    resumed_at: datetime | None
    max_in_flight: int | None
    rate_limit_count: int | None
    rate_limit_seconds: float | None
    circuit_breaker: bool
    max_wait_seconds: float | None
    max_retry_limit: int | None
    now: datetime

    def flow(self) -> Flow:
        """Return the state alone."""
        return Flow(*(getattr(self, name) for name in Flow.__struct_fields__))

    def settings(self, defaults: RetryPolicy = SYSTEM_DEFAULTS) -> FlowSettings:
        """Return what limits the flow."""
        return FlowSettings(
            self.paused_at,
            self.max_in_flight or MAX_IN_FLIGHT,
            self.rate_limit_count,
            self.rate_limit_seconds,
            self.circuit_breaker,
            defaults.breaker_failures,
            defaults.probe_seconds,
        )


class WaitingFlow(FlowRow, frozen=True, kw_only=True):
    """A flow row, and what waits. oldest_at, oldest_ordered_at: when the first waiting saga outside of the order, and
    the first ordered one, are or were due."""

    oldest_at: datetime | None
    oldest_ordered_at: datetime | None

    @property
    def first_at(self) -> datetime | None:
        """When the first waiting saga is or was due; None when none waits."""
        return min((at for at in (self.oldest_at, self.oldest_ordered_at) if at is not None), default=None)

    def ending(self) -> "Ending | None":
        """Return which of the waiting sagas are to end without another attempt, if any may."""
        if self.first_at is None:
            return None
        if not self.deliverable and self.first_at <= self.now:
            return Ending(self.now, LAST_ID, ErrorCode.SUBSCRIPTION_INACTIVE)
        if self.discard_through:
            far = self.now + timedelta(days=3650)
            return Ending(far, self.discard_through, ErrorCode.DISCARDED)
        longest = timedelta(seconds=self.max_wait_seconds or MAX_WAIT_SECONDS)
        counted_from = max(self.first_at, self.resumed_at or self.first_at)
        if self.paused_at is None and self.deliverable and counted_from + longest < self.now:
            return Ending(self.now - longest, LAST_ID, ErrorCode.EXPIRED)
        return None


class Ending(msgspec.Struct, frozen=True):
    """The waiting sagas of a subscription that were due at due_before, up to an id, end with this code."""

    due_before: datetime
    through: int
    cause: ErrorCode


class ResultFlow(FlowRow, frozen=True, kw_only=True):
    """Flow of a subscription with results. has_due, has_ordered_due: more of its sagas are due, outside of the order or
    in it."""

    in_flight: int
    has_due: bool
    has_ordered_due: bool


_DECODER = msgspec.json.Decoder(ResultFlow)


def read_flow(text: str) -> ResultFlow:
    """Read the flow of a FinishedJob."""
    return _DECODER.decode(text)


class StartedRow(msgspec.Struct, frozen=True):
    """An attempt that was started, a saga without attempts left (no job_id), or what is left of a subscription (no
    saga_id).

    size: how many could start. due: how many were due, counted up to size + 1. ordered_blocked: first sagas of their
    keys that wait for an earlier event. next_due_at: when the next one is due that is not yet. order_cursor: the last
    ordering key that was looked at; None when all were. order_is_cut: there were too many.
    """

    subscription_id: int
    saga_id: int | None
    job_id: int | None
    slow: bool
    previous_status: str | None
    attempt_count: int | None
    next_attempt_at: datetime | None
    final_error_code: str | None
    webhook_id: Any
    traceparent: str | None
    in_flight: int | None
    size: int | None
    due: int | None
    ordered_blocked: int | None
    next_due_at: datetime | None
    order_cursor: str | None
    order_is_cut: bool


def versions_of(rows: Sequence[FlowRow]) -> dict[str, list[int]]:
    """Return the parameters that name these rows as they were read."""
    return {
        "subscription_ids": [row.subscription_id for row in rows],
        "versions": [row.version for row in rows],
    }


def flow_columns(rows: Sequence[tuple[FlowRow, Flow]]) -> dict[str, list[Any]]:
    """Return the parameters that write these flows, each beside the row that it was decided from."""
    columns: dict[str, list[Any]] = {
        "flow_subscription_id": [row.subscription_id for row, _ in rows],
        "flow_version": [row.version for row, _ in rows],
    }
    for name in Flow.__struct_fields__:
        columns[f"flow_{name}"] = [getattr(flow, name) for _, flow in rows]
    return columns
