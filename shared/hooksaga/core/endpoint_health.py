"""When an endpoint is given up: a pure decision over the run of failures since its last success.

An endpoint that answers 410 says itself that it is gone, and one such answer is enough. Any other is given up only
after days of nothing but failure, which have to be more than the memory of one bad hour: the run is as old as the
policy says, it has MIN_FAILURES attempts, and the last of them is FRESH_SECONDS old at most. Half-way and shortly
before, somebody can be warned. An endpoint without traffic is left alone.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

MIN_FAILURES = 10
FRESH_SECONDS = 86_400.0
FIRST_WARNING, LAST_WARNING = 50, 90
"""Per cent of the time after which an endpoint is given up."""


class DisabledReason(StrEnum):
    """Why the monitor switched a subscription off."""

    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """How long nothing but failure is borne; 0 means for ever."""

    disable_after_seconds: float = 5 * 86_400.0

    @property
    def gives_up(self) -> bool:
        """Whether failures alone ever end a subscription."""
        return self.disable_after_seconds > 0

    def seconds_until(self, percent: float) -> float:
        """From the first failure to so many per cent of the whole time."""
        return self.disable_after_seconds * percent / 100


@dataclass(frozen=True, slots=True)
class FailureRun:
    """What the decision needs: failures since the last success, and which warnings were given for them."""

    failures: int
    first_failure_at: datetime
    last_failure_at: datetime
    warned_at_50: datetime | None = None
    warned_at_90: datetime | None = None


@dataclass(frozen=True, slots=True)
class EarlyWarning:
    """The endpoint has been failing for so many per cent of the time after which it is given up."""

    percent: int


def judge_run(run: FailureRun, policy: HealthPolicy, now: datetime) -> DisabledReason | EarlyWarning | None:
    """What is due for an endpoint that answered no 410, if anything. Each warning is due once, the last one alone
    where both are late."""
    age = (now - run.first_failure_at).total_seconds()
    is_fresh = (now - run.last_failure_at).total_seconds() < FRESH_SECONDS
    if not policy.gives_up or not is_fresh or run.failures < MIN_FAILURES:
        return None
    if age >= policy.seconds_until(100):
        return DisabledReason.FAILING
    if age >= policy.seconds_until(LAST_WARNING):
        return None if run.warned_at_90 else EarlyWarning(LAST_WARNING)
    if age >= policy.seconds_until(FIRST_WARNING) and not run.warned_at_50:
        return None if run.warned_at_90 else EarlyWarning(FIRST_WARNING)
    return None


def disabled_at_if_it_goes_on(first_failure_at: datetime | None, policy: HealthPolicy) -> datetime | None:
    """When an endpoint that only fails from now on is given up; None where it never is."""
    if first_failure_at is None or not policy.gives_up:
        return None
    return first_failure_at + timedelta(seconds=policy.disable_after_seconds)
