"""Decision to disable an endpoint, from the run of failures since its last success. Pure.

One answer of 410 disables an endpoint. Otherwise only days of failures do: the run must be as old as the policy says
and have at least MIN_FAILURES attempts, the last one at most FRESH_SECONDS ago. Warnings are due half-way and shortly
before. An endpoint without traffic is not disabled.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

MIN_FAILURES = 10
FRESH_SECONDS = 86_400.0
FIRST_WARNING, LAST_WARNING = 50, 90
"""Percentages of the time after which an endpoint is disabled."""


class DisabledReason(StrEnum):
    GONE = "gone"
    FAILING = "failing"


class HealthState(StrEnum):
    """Health of an endpoint in one word. UNKNOWN: no attempt has ended since it was last enabled."""

    HEALTHY = "healthy"
    FAILING = "failing"
    DISABLED = "disabled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """Seconds of uninterrupted failure after which an endpoint is disabled; 0 means never."""

    disable_after_seconds: float = 5 * 86_400.0

    @property
    def disables_endpoints(self) -> bool:
        """Return whether failures alone ever disable a subscription."""
        return self.disable_after_seconds > 0

    def seconds_until(self, percent: float) -> float:
        """Return the seconds from the first failure to a percentage of the whole time."""
        return self.disable_after_seconds * percent / 100


@dataclass(frozen=True, slots=True)
class FailureRun:
    failures: int
    first_failure_at: datetime
    last_failure_at: datetime
    warned_at_50: datetime | None = None
    warned_at_90: datetime | None = None


@dataclass(frozen=True, slots=True)
class EarlyWarning:
    """Warning that a percentage of the time until disabling has passed."""

    percent: int


def judge_run(run: FailureRun, policy: HealthPolicy, now: datetime) -> DisabledReason | EarlyWarning | None:
    """Return the warning or decision that is due, if any, for an endpoint that did not answer 410.

    Each warning is due once. If both are late, only the last is due.
    """
    age = (now - run.first_failure_at).total_seconds()
    is_fresh = (now - run.last_failure_at).total_seconds() < FRESH_SECONDS
    if not policy.disables_endpoints or not is_fresh or run.failures < MIN_FAILURES:
        return None
    if age >= policy.seconds_until(100):
        return DisabledReason.FAILING
    if age >= policy.seconds_until(LAST_WARNING):
        return None if run.warned_at_90 else EarlyWarning(LAST_WARNING)
    if age >= policy.seconds_until(FIRST_WARNING) and not run.warned_at_50:
        return None if run.warned_at_90 else EarlyWarning(FIRST_WARNING)
    return None


def health_state(
    *,
    active: bool,
    disabled_at: datetime | None,
    consecutive_failures: int,
    last_success_at: datetime | None,
) -> HealthState:
    """Return the health of an endpoint in one word, from what the health monitor has counted."""
    if disabled_at is not None and not active:
        return HealthState.DISABLED
    if consecutive_failures:
        return HealthState.FAILING
    return HealthState.UNKNOWN if last_success_at is None else HealthState.HEALTHY


def expected_disable_time(first_failure_at: datetime | None, policy: HealthPolicy) -> datetime | None:
    """Return when an endpoint is disabled if all attempts fail from now on; None for never."""
    if first_failure_at is None or not policy.disables_endpoints:
        return None
    return first_failure_at + timedelta(seconds=policy.disable_after_seconds)
