"""Flow control as it is shown: the state of a subscription, and what a waiting delivery waits for. Pure."""

from datetime import datetime
from enum import StrEnum

import msgspec

from hooksaga.core.flow import Flow, FlowSettings, FlowStatus, room


class WaitsFor(StrEnum):
    """What a waiting delivery waits for. Where several apply, the first of this list.

    The middle four are FlowStatus: what closes the room of the subscription. START: nothing; it is about to start.
    """

    RETRY = "retry"
    PAUSED = FlowStatus.PAUSED.value
    RETRY_AFTER = FlowStatus.RETRY_AFTER.value
    BREAKER_OPEN = FlowStatus.BREAKER_OPEN.value
    LIMITED = FlowStatus.LIMITED.value
    ORDER = "order"
    START = "start"


class FlowState(msgspec.Struct, frozen=True):
    """State of a subscription's flow. limit: how many deliveries may be in flight now, 0 while closed.

    since: when it was paused, or when the circuit breaker opened; None for the others. until: when time opens it, if
    time does.
    """

    status: FlowStatus
    since: datetime | None
    until: datetime | None
    limit: int


def flow_state(settings: FlowSettings, flow: Flow, in_flight: int, now: datetime) -> FlowState:
    """Return the state of a subscription that has so many deliveries in flight."""
    seen = room(settings, flow, now)
    is_full = seen.status is FlowStatus.OPEN and in_flight >= seen.in_flight
    since = {FlowStatus.PAUSED: settings.paused_at, FlowStatus.BREAKER_OPEN: flow.breaker_opened_at}
    return FlowState(
        status=FlowStatus.LIMITED if is_full else seen.status,
        since=since.get(seen.status),
        until=seen.until,
        limit=seen.in_flight,
    )


def waits_for(status: FlowStatus, next_attempt_at: datetime, now: datetime, *, is_first: bool) -> WaitsFor:
    """Return what a waiting delivery waits for.

    status: state of its subscription. is_first: no earlier delivery of its ordering key is left; True for deliveries
    outside of the order.
    """
    if next_attempt_at > now:
        return WaitsFor.RETRY
    if status is not FlowStatus.OPEN:
        return WaitsFor(status.value)
    return WaitsFor.START if is_first else WaitsFor.ORDER
