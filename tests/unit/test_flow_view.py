"""The shown state of a subscription's flow, and what a waiting delivery waits for."""

from datetime import UTC, datetime, timedelta

import pytest

from hooksaga.core.flow import Flow, FlowSettings, FlowStatus
from hooksaga.core.flow_view import WaitsFor, flow_state, waits_for

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)
BEFORE, LATER = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
BREAKER = Flow(breaker_opened_at=BEFORE, probe_at=LATER)


def test_an_open_subscription_shows_its_limit() -> None:
    state = flow_state(FlowSettings(max_in_flight=7), Flow(), 6, NOW)
    assert (state.status, state.since, state.until, state.limit) == (FlowStatus.OPEN, None, None, 7)


def test_a_full_subscription_is_limited() -> None:
    state = flow_state(FlowSettings(), Flow(in_flight_limit=10), 10, NOW)
    assert (state.status, state.since, state.until, state.limit) == (FlowStatus.LIMITED, None, None, 10)


def test_an_empty_bucket_says_until_when() -> None:
    settings = FlowSettings(rate_count=1, rate_seconds=60)
    state = flow_state(settings, Flow(tokens=0, tokens_at=NOW), 0, NOW)
    assert (state.status, state.since, state.until) == (FlowStatus.LIMITED, None, LATER)


def test_a_paused_subscription_says_since_when() -> None:
    state = flow_state(FlowSettings(paused_at=BEFORE), BREAKER, 0, NOW)
    assert (state.status, state.since, state.until, state.limit) == (FlowStatus.PAUSED, BEFORE, None, 0)


def test_an_open_breaker_says_since_when_and_when_the_probe_is_due() -> None:
    state = flow_state(FlowSettings(), BREAKER, 0, NOW)
    assert (state.status, state.since, state.until, state.limit) == (
        FlowStatus.BREAKER_OPEN,
        BEFORE,
        LATER,
        0,
    )


def test_a_probe_under_way_leaves_the_breaker_open() -> None:
    state = flow_state(FlowSettings(), Flow(breaker_opened_at=BEFORE, probe_at=BEFORE), 1, NOW)
    assert (state.status, state.since, state.until, state.limit) == (FlowStatus.BREAKER_OPEN, BEFORE, None, 1)


def test_retry_after_has_no_beginning() -> None:
    state = flow_state(FlowSettings(), Flow(retry_after_until=LATER), 0, NOW)
    assert (state.status, state.since, state.until) == (FlowStatus.RETRY_AFTER, None, LATER)


@pytest.mark.parametrize("status", FlowStatus)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_delivery_that_is_not_due_waits_for_its_retry(status: FlowStatus, is_first: bool) -> None:
    assert waits_for(status, LATER, NOW, is_first=is_first) is WaitsFor.RETRY


@pytest.mark.parametrize("status", [one for one in FlowStatus if one is not FlowStatus.OPEN])
def test_a_due_delivery_waits_for_what_closes_its_subscription(status: FlowStatus) -> None:
    assert waits_for(status, BEFORE, NOW, is_first=False).value == status.value


def test_a_due_delivery_of_an_open_subscription_starts_or_waits_for_its_turn() -> None:
    assert waits_for(FlowStatus.OPEN, NOW, NOW, is_first=True) is WaitsFor.START
    assert waits_for(FlowStatus.OPEN, NOW, NOW, is_first=False) is WaitsFor.ORDER
