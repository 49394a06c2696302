"""What a dead letter says when its subscription received nothing more."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hooksaga.core.not_sent import Inactive, why_not_sent

ONE = Inactive(
    id=1,
    active=False,
    verified=True,
    deleted_at=None,
    disabled_at=None,
    disabled_reason=None,
    disabled_failing_since=None,
)
SINCE, OFF = datetime(2026, 3, 9, 8, 7, 6, tzinfo=UTC), datetime(2026, 3, 14, 12, tzinfo=UTC)
FAILING = replace(ONE, disabled_at=OFF, disabled_reason="failing", disabled_failing_since=SINCE)
DISABLED = "and the subscription was disabled at 2026-03-14T12:00:00Z"


@pytest.mark.parametrize(
    ("last_error_code", "beginning"),
    [
        (None, "it was not sent: "),
        ("subscription_inactive", "it was not sent: "),
        ("http_500", "no further attempt was made: "),
        ("timeout_total", "no further attempt was made: "),
    ],
)
def test_it_says_whether_anything_was_sent(last_error_code: str | None, beginning: str) -> None:
    told = why_not_sent(ONE, last_error_code)
    assert told == f"{beginning}the subscription was deactivated by an operator"


@pytest.mark.parametrize(
    ("subscription", "cause"),
    [
        (replace(FAILING, deleted_at=OFF), "the subscription was deleted at 2026-03-14T12:00:00Z"),
        (
            FAILING,
            f"all attempts had failed since 2026-03-09T08:07:06Z, {DISABLED}",
        ),
        (
            replace(FAILING, disabled_failing_since=None),
            f"all attempts had failed since 2026-03-14T12:00:00Z, {DISABLED}",
        ),
        (
            replace(FAILING, disabled_reason="gone"),
            f"the endpoint answered 410 Gone, {DISABLED}",
        ),
        (replace(ONE, verified=False), "the subscription was deactivated by an operator"),
        (
            replace(FAILING, active=True, verified=False),
            "the callback URL of the subscription was not verified",
        ),
        (replace(FAILING, active=True), "the subscription was inactive at that time"),
        (None, "the subscription was inactive at that time"),
    ],
)
def test_the_first_cause_that_applies_is_told(subscription: Inactive | None, cause: str) -> None:
    assert why_not_sent(subscription, None) == f"it was not sent: {cause}"
