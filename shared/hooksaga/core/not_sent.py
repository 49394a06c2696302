"""Reasons of dead letters whose delivery got no further attempt."""

from dataclasses import dataclass
from datetime import datetime

from hooksaga.core.endpoint_health import DisabledReason
from hooksaga.core.outcomes import ErrorCode

ENDED = {
    ErrorCode.CANCELED: "an operator canceled it",
    ErrorCode.DISCARDED: "the backlog was discarded when the subscription was resumed",
    ErrorCode.ERASED: "its event was erased",
    ErrorCode.EXPIRED: "it was due for longer than the subscription's max_wait_seconds",
}
"""Reasons of dead letters that End makes."""


@dataclass(frozen=True, slots=True)
class Inactive:
    """State of an inactive subscription. The last three fields are set if the monitor disabled it."""

    id: int
    active: bool
    verified: bool
    deleted_at: datetime | None
    disabled_at: datetime | None
    disabled_reason: str | None
    disabled_failing_since: datetime | None


def why_not_sent(subscription: Inactive | None, last_error_code: str | None) -> str:
    """Explain why an inactive subscription received nothing. last_error_code: of the last attempt; None without one."""
    tried = last_error_code not in (None, ErrorCode.SUBSCRIPTION_INACTIVE)
    return f"{'no further attempt was made' if tried else 'it was not sent'}: {_cause(subscription)}"


def _cause(one: Inactive | None) -> str:
    if one is not None and one.deleted_at is not None:
        return f"the subscription was deleted at {_moment(one.deleted_at)}"
    if one is not None and not one.active and one.disabled_at is not None:
        off = f"and the subscription was disabled at {_moment(one.disabled_at)}"
        if one.disabled_reason == DisabledReason.GONE:
            return f"the endpoint answered 410 Gone, {off}"
        since = one.disabled_failing_since or one.disabled_at
        return f"all attempts had failed since {_moment(since)}, {off}"
    if one is not None and not one.active:
        return "the subscription was deactivated by an operator"
    if one is not None and not one.verified:
        return "the callback URL of the subscription was not verified"
    return "the subscription was inactive at that time"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
