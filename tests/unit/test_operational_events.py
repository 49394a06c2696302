"""Content of operational events, which go to subscribers' endpoints."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from hooksaga.core.endpoint_health import DisabledReason
from hooksaga.core.operational_events import (
    BreakerChange,
    DeadDelivery,
    FailingEndpoint,
    OperationalEvent,
    breaker_events,
    delivery_dead_lettered,
    subscription_disabled,
    subscription_failing,
)
from hooksaga.core.outcomes import INSIDE_CODES, NO_PUBLIC_ADDRESS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://hooks.example.com/secret-path?token=1"


def every_event(error_code: str) -> list[OperationalEvent]:
    endpoint = FailingEndpoint(1, "acme", ["a.b"], URL, NOW, 3, NOW, NOW, error_code, None, None, NOW)
    dead = DeadDelivery(1, 2, "evt_" + "0" * 32, "a.b", "acme", 1, URL, error_code, 5, NOW)
    opened = BreakerChange(1, "acme", ["a.b"], URL, None, None, NOW, 10, error_code, True, True)
    return [
        *breaker_events(opened),
        subscription_failing(endpoint, 50, NOW),
        subscription_disabled(endpoint, DisabledReason.FAILING),
        delivery_dead_lettered(dead),
    ]


@pytest.mark.parametrize("error_code", sorted(INSIDE_CODES))
def test_a_refused_and_a_missing_name_are_one_word(error_code: str) -> None:
    told = [json.loads(event.payload)["data"]["error_code"] for event in every_event(error_code)]
    assert told == [NO_PUBLIC_ADDRESS] * 4


def test_other_codes_are_told() -> None:
    told = [json.loads(event.payload)["data"] for event in every_event("http_503")]
    assert [data["error_code"] for data in told] == ["http_503"] * 4
    assert [data["callback_host"] for data in told] == ["hooks.example.com"] * 4
    assert not [event for event in every_event("http_503") if "secret" in event.payload]


THEN, LATER = NOW - timedelta(hours=2), NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("told_at", "closed_at", "opened_at", "opening_is_heard", "closing_is_heard", "types"),
    [
        (None, None, NOW, True, True, ["breaker_opened"]),
        (None, None, NOW, False, True, []),
        (THEN, LATER, None, True, True, ["breaker_closed"]),
        (THEN, LATER, None, True, False, []),
        (THEN, LATER, NOW, True, True, ["breaker_closed", "breaker_opened"]),
        (THEN, LATER, NOW, True, False, ["breaker_opened"]),
    ],
)
def test_a_change_of_a_breaker_is_an_event_for_each_part_that_somebody_hears(
    told_at: datetime | None,
    closed_at: datetime | None,
    opened_at: datetime | None,
    opening_is_heard: bool,
    closing_is_heard: bool,
    types: list[str],
) -> None:
    change = BreakerChange(
        1, "acme", ["a.b"], URL, told_at, closed_at, opened_at, 10, None, opening_is_heard, closing_is_heard
    )
    events = breaker_events(change)
    assert [event.event_type for event in events] == [f"hooksaga.subscription.{one}" for one in types]
    assert len({event.key for event in events}) == len(events)
    assert not [event for event in events if "secret" in event.payload]
