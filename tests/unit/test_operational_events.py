"""Content of operational events, which go to subscribers' endpoints."""

import json
from datetime import UTC, datetime

import pytest

from hooksaga.core.endpoint_health import DisabledReason
from hooksaga.core.operational_events import (
    DeadDelivery,
    FailingEndpoint,
    OperationalEvent,
    delivery_dead_lettered,
    subscription_disabled,
    subscription_failing,
)
from hooksaga.core.outcomes import INSIDE_CODES, NO_PUBLIC_ADDRESS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://hooks.example.com/secret-path?token=1"


def every_event(error_code: str) -> list[OperationalEvent]:
    endpoint = FailingEndpoint(1, "acme", "a.b", URL, NOW, 3, NOW, NOW, error_code, None, None, NOW)
    dead = DeadDelivery(1, 2, "evt_" + "0" * 32, "a.b", "acme", 1, URL, error_code, 5, NOW)
    return [
        subscription_failing(endpoint, 50, NOW),
        subscription_disabled(endpoint, DisabledReason.FAILING),
        delivery_dead_lettered(dead),
    ]


@pytest.mark.parametrize("error_code", sorted(INSIDE_CODES))
def test_a_refused_and_a_missing_name_are_one_word(error_code: str) -> None:
    told = [json.loads(event.payload)["data"]["error_code"] for event in every_event(error_code)]
    assert told == [NO_PUBLIC_ADDRESS] * 3


def test_other_codes_are_told() -> None:
    told = [json.loads(event.payload)["data"] for event in every_event("http_503")]
    assert [data["error_code"] for data in told] == ["http_503"] * 3
    assert [data["callback_host"] for data in told] == ["hooks.example.com"] * 3
    assert not [event for event in every_event("http_503") if "secret" in event.payload]
