"""When an endpoint is given up, at the edges of each condition."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hooksaga.core.endpoint_health import (
    MIN_FAILURES,
    DisabledReason,
    EarlyWarning,
    FailureRun,
    HealthPolicy,
    HealthState,
    expected_disable_time,
    health_state,
    judge_run,
)
from hooksaga.core.outcomes import UNCOUNTED, ErrorCode

NOW = datetime(2026, 1, 31, tzinfo=UTC)
POLICY = HealthPolicy(10 * 86_400)


def run_of(days: float, **changes: object) -> FailureRun:
    """A run that began so many days ago and goes on."""
    return replace(FailureRun(MIN_FAILURES, NOW - timedelta(days=days), NOW), **changes)


@pytest.mark.parametrize(
    ("days", "what"),
    [
        (0, None),
        (4.99, None),
        (5, EarlyWarning(50)),
        (8.99, EarlyWarning(50)),
        (9, EarlyWarning(90)),
        (9.99, EarlyWarning(90)),
        (10, DisabledReason.FAILING),
        (100, DisabledReason.FAILING),
    ],
)
def test_what_is_due_depends_on_the_age_of_the_run(days: float, what: object) -> None:
    assert judge_run(run_of(days), POLICY, NOW) == what


@pytest.mark.parametrize(
    ("days", "warned", "what"),
    [
        (6, {"warned_at_50": NOW}, None),
        (9, {"warned_at_50": NOW}, EarlyWarning(90)),
        (9, {"warned_at_90": NOW}, None),
        (6, {"warned_at_90": NOW}, None),
        (10, {"warned_at_50": NOW, "warned_at_90": NOW}, DisabledReason.FAILING),
    ],
)
def test_each_warning_is_given_once(days: float, warned: dict[str, object], what: object) -> None:
    assert judge_run(run_of(days, **warned), POLICY, NOW) == what


@pytest.mark.parametrize("days", [5, 9, 10])
def test_few_failures_or_old_ones_decide_nothing(days: float) -> None:
    assert judge_run(run_of(days, failures=MIN_FAILURES - 1), POLICY, NOW) is None
    day = timedelta(days=1)
    assert judge_run(run_of(days, last_failure_at=NOW - day), POLICY, NOW) is None
    fresh = run_of(days, last_failure_at=NOW - day + timedelta(seconds=1))
    assert judge_run(fresh, POLICY, NOW) is not None


@pytest.mark.parametrize(
    ("active", "disabled_at", "failures", "last_success_at", "state"),
    [
        (True, None, 0, None, HealthState.UNKNOWN),
        (True, None, 0, NOW, HealthState.HEALTHY),
        (True, None, 1, NOW, HealthState.FAILING),
        (True, None, 1, None, HealthState.FAILING),
        (False, NOW, 9, NOW, HealthState.DISABLED),
        (False, NOW, 0, None, HealthState.DISABLED),
        (True, NOW, 0, NOW, HealthState.HEALTHY),
        (False, None, 0, NOW, HealthState.HEALTHY),
        (False, None, 3, NOW, HealthState.FAILING),
    ],
)
def test_an_endpoint_is_disabled_only_while_it_is_inactive_for_its_failures(
    active: bool,
    disabled_at: datetime | None,
    failures: int,
    last_success_at: datetime | None,
    state: HealthState,
) -> None:
    found = health_state(
        active=active,
        disabled_at=disabled_at,
        consecutive_failures=failures,
        last_success_at=last_success_at,
    )
    assert found == state


def test_zero_is_never() -> None:
    assert judge_run(run_of(300), HealthPolicy(0), NOW) is None
    assert expected_disable_time(NOW, HealthPolicy(0)) is None
    assert expected_disable_time(None, POLICY) is None
    assert expected_disable_time(NOW, POLICY) == NOW + timedelta(days=10)


def test_every_word_is_about_the_endpoint_or_is_not() -> None:
    """A new word has to be put in one of the two."""
    about = {
        ErrorCode.TIMEOUT_CONNECT,
        ErrorCode.TIMEOUT_TOTAL,
        ErrorCode.DNS_NXDOMAIN,
        ErrorCode.DNS_ERROR,
        ErrorCode.TLS_ERROR,
        ErrorCode.CONNECTION_REFUSED,
        ErrorCode.CONNECTION_RESET,
        ErrorCode.ADDRESS_BLOCKED,
        ErrorCode.INVALID_URL,
        ErrorCode.PROTOCOL_ERROR,
    }
    assert about | set(UNCOUNTED) == set(ErrorCode)
    assert about & set(UNCOUNTED) == set()
