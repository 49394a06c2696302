"""Operational events: events about hooksaga itself, delivered to subscriptions of the tenant like any event.

Their types begin with `hooksaga.`, which is reserved. Their payloads hold ids, times, error codes as subscribers see
them, and the host of a callback URL, but never the payload of an event, a path, a query, a header or a secret.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from hooksaga.core.endpoint_health import DisabledReason
from hooksaga.core.models import rfc3339
from hooksaga.core.outcomes import subscriber_error_code


class OperationalType(StrEnum):
    SUBSCRIPTION_FAILING = "hooksaga.subscription.failing"
    SUBSCRIPTION_DISABLED = "hooksaga.subscription.disabled"
    SUBSCRIPTION_RECOVERED = "hooksaga.subscription.recovered"
    BREAKER_OPENED = "hooksaga.subscription.breaker_opened"
    BREAKER_CLOSED = "hooksaga.subscription.breaker_closed"
    DELIVERY_DEAD_LETTERED = "hooksaga.delivery.dead_lettered"


@dataclass(frozen=True, slots=True)
class OperationalEvent:
    """An operational event that is not stored yet. `key` is its idempotency key."""

    tenant_id: str
    event_type: OperationalType
    key: str
    payload: str


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """A subscription with its run of failures. watched_since distinguishes runs before and after a reset."""

    id: int
    tenant_id: str
    event_types: list[str]
    callback_url: str
    watched_since: datetime
    failures: int
    first_failure_at: datetime
    last_failure_at: datetime
    last_error_code: str | None
    warned_at_50: datetime | None
    warned_at_90: datetime | None
    now: datetime


def subscription_failing(
    endpoint: FailingEndpoint, percent: int, will_be_disabled_at: datetime | None
) -> OperationalEvent:
    """Build the warning that `percent` of the time until disabling has passed."""
    data = {**_about(endpoint), "percent": percent, "will_be_disabled_at": rfc3339(will_be_disabled_at)}
    key = f"subscription:{endpoint.id}:failing:{percent}:{rfc3339(endpoint.first_failure_at)}"
    return _event(endpoint.tenant_id, OperationalType.SUBSCRIPTION_FAILING, key, endpoint.now, data)


def subscription_disabled(endpoint: FailingEndpoint, reason: DisabledReason) -> OperationalEvent:
    data = {**_about(endpoint), "reason": reason.value, "disabled_at": rfc3339(endpoint.now)}
    key = f"subscription:{endpoint.id}:disabled:{rfc3339(endpoint.watched_since)}"
    return _event(endpoint.tenant_id, OperationalType.SUBSCRIPTION_DISABLED, key, endpoint.now, data)


def _about(endpoint: FailingEndpoint) -> dict[str, Any]:
    return {
        "subscription_id": endpoint.id,
        "event_types": endpoint.event_types,
        "callback_host": _host(endpoint.callback_url),
        "error_code": subscriber_error_code(endpoint.last_error_code),
        "consecutive_failures": endpoint.failures,
        "first_failure_at": rfc3339(endpoint.first_failure_at),
        "last_failure_at": rfc3339(endpoint.last_failure_at),
    }


@dataclass(frozen=True, slots=True)
class RecoveredEndpoint:
    """A subscription that succeeds again. failing_since: first failure of the run that an event has told."""

    id: int
    tenant_id: str
    event_types: list[str]
    callback_url: str
    failing_since: datetime
    recovered_at: datetime


def subscription_recovered(endpoint: RecoveredEndpoint) -> OperationalEvent:
    data = {
        "subscription_id": endpoint.id,
        "event_types": endpoint.event_types,
        "callback_host": _host(endpoint.callback_url),
        "failing_since": rfc3339(endpoint.failing_since),
        "recovered_at": rfc3339(endpoint.recovered_at),
    }
    key = f"subscription:{endpoint.id}:recovered:{rfc3339(endpoint.failing_since)}"
    recovered = OperationalType.SUBSCRIPTION_RECOVERED
    return _event(endpoint.tenant_id, recovered, key, endpoint.recovered_at, data)


@dataclass(frozen=True, slots=True)
class BreakerChange:
    """A subscription whose circuit breaker has opened or closed.

    told_at: the opening that was told and ended at closed_at; opened_at: the opening to tell. At least one is set.
    *_is_heard: whether the tenant has a subscriber to that event.
    """

    id: int
    tenant_id: str
    event_types: list[str]
    callback_url: str
    told_at: datetime | None
    closed_at: datetime | None
    opened_at: datetime | None
    failures: int
    last_error_code: str | None
    opening_is_heard: bool
    closing_is_heard: bool


def breaker_events(change: BreakerChange) -> list[OperationalEvent]:
    """Build the events of a change that have a subscriber: the end of one opening, and the next opening."""
    events: list[OperationalEvent] = []
    about = {
        "subscription_id": change.id,
        "event_types": change.event_types,
        "callback_host": _host(change.callback_url),
    }
    if change.closing_is_heard and change.told_at is not None and change.closed_at is not None:
        data = {**about, "opened_at": rfc3339(change.told_at), "closed_at": rfc3339(change.closed_at)}
        key = f"subscription:{change.id}:breaker_closed:{rfc3339(change.told_at)}"
        events.append(_event(change.tenant_id, OperationalType.BREAKER_CLOSED, key, change.closed_at, data))
    if change.opening_is_heard and change.opened_at is not None:
        data = {
            **about,
            "error_code": subscriber_error_code(change.last_error_code),
            "consecutive_failures": change.failures,
            "opened_at": rfc3339(change.opened_at),
        }
        key = f"subscription:{change.id}:breaker_opened:{rfc3339(change.opened_at)}"
        events.append(_event(change.tenant_id, OperationalType.BREAKER_OPENED, key, change.opened_at, data))
    return events


@dataclass(frozen=True, slots=True)
class DeadDelivery:
    """A dead letter, without its payload. event_id is the public one, `evt_…`."""

    dead_letter_id: int
    saga_id: int
    event_id: str
    event_type: str
    tenant_id: str
    subscription_id: int
    callback_url: str
    error_code: str | None
    attempts: int
    failed_at: datetime


def delivery_dead_lettered(dead: DeadDelivery) -> OperationalEvent:
    data = {
        "dead_letter_id": dead.dead_letter_id,
        "saga_id": dead.saga_id,
        "event_id": dead.event_id,
        "event_type": dead.event_type,
        "subscription_id": dead.subscription_id,
        "callback_host": _host(dead.callback_url),
        "error_code": subscriber_error_code(dead.error_code),
        "attempts": dead.attempts,
        "failed_at": rfc3339(dead.failed_at),
    }
    key = f"dead_letter:{dead.dead_letter_id}"
    return _event(dead.tenant_id, OperationalType.DELIVERY_DEAD_LETTERED, key, dead.failed_at, data)


def _host(callback_url: str) -> str | None:
    return urlsplit(callback_url).hostname


def _event(
    tenant_id: str, event_type: OperationalType, key: str, at: datetime, data: dict[str, Any]
) -> OperationalEvent:
    content = {"type": event_type.value, "timestamp": rfc3339(at), "data": data}
    return OperationalEvent(tenant_id, event_type, key, json.dumps(content, separators=(",", ":")))
