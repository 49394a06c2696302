"""Flow control: how many deliveries of one subscription may be in progress at this moment. Pure.

A subscription has room. The orchestrator, which alone makes jobs, starts attempts only into room; a delivery without
room stays a waiting saga, without a job and without a message. Room is computed from the subscription's settings, its
flow state and the time, and what is in progress is counted from rows.

What closes it, in this order: the subscription is paused, the receiver asked for time (Retry-After), the circuit
breaker is open, the rate limit has no token, the concurrency limit is reached.

- The concurrency limit adapts as TCP does: it begins at FIRST_LIMIT, grows by one with each success while it is full,
  and halves on overload (a timeout, a refused connection, 429 or 503), at most once for what was sent before.
- The rate limit is a token bucket that holds `count` tokens: after a rest as many may start at once.
- The circuit breaker opens after breaker_failures failures in a row. Then one delivery at a time is tried, the probe:
  after probe_seconds, then after twice the wait each time, up to 10 minutes. Any success closes the breaker. A failed
  probe never uses up a delivery's last attempt.
- Our own faults and answers about the payload (UNCOUNTED, PAYLOAD_CODES) say nothing about the endpoint.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from hooksaga.core.backoff import RETRY_AFTER_CAP_SECONDS
from hooksaga.core.outcomes import UNCOUNTED, ErrorCode, http_error

FIRST_LIMIT = 10.0
MAX_IN_FLIGHT = 1000
LAST_PROBE_SECONDS = 600.0
LONG_WAIT = timedelta(seconds=10)
"""Waits for a probe from this one on end at a whole second."""

MAX_WAIT_SECONDS = 3 * 86_400.0
SLOW_MS = 2000
"""An attempt that takes longer makes its subscription slow, for SLOW_SECONDS."""

SLOW_SECONDS = 60.0
MIN_WAIT_SECONDS = 0.02
"""Tokens are waited for at least so long, so that a high rate is served in batches."""

PAYLOAD_CODES = frozenset(http_error(status) for status in (400, 413, 415, 422))
"""The receiver took the request and rejected this payload."""

OVERLOAD_CODES = frozenset(
    {
        ErrorCode.TIMEOUT_CONNECT.value,
        ErrorCode.TIMEOUT_TOTAL.value,
        ErrorCode.CONNECTION_REFUSED.value,
        http_error(429),
        http_error(503),
    }
)
RETRY_AFTER_CODES = frozenset({http_error(429), http_error(503)})


class FlowStatus(StrEnum):
    """Why deliveries of a subscription wait, or `open`."""

    OPEN = "open"
    PAUSED = "paused"
    RETRY_AFTER = "retry_after"
    BREAKER_OPEN = "breaker_open"
    LIMITED = "limited"


class FlowSettings(msgspec.Struct, frozen=True):
    """What limits the flow of a subscription. rate_count attempts may start per rate_seconds; None: any. The last two
    are the system's."""

    paused_at: datetime | None = None
    max_in_flight: int = MAX_IN_FLIGHT
    rate_count: int | None = None
    rate_seconds: float | None = None
    circuit_breaker: bool = True
    breaker_failures: int = 10
    probe_seconds: float = 5


class Flow(msgspec.Struct, frozen=True):
    """Flow state of one subscription: a row of subscription_flow."""

    in_flight_limit: float = FIRST_LIMIT
    limit_halved_at: datetime | None = None
    tokens: float | None = None
    tokens_at: datetime | None = None
    retry_after_until: datetime | None = None
    failures_in_a_row: int = 0
    breaker_opened_at: datetime | None = None
    probes: int = 0
    probe_at: datetime | None = None
    probe_saga_id: int | None = None
    slow_until: datetime | None = None
    wake_at: datetime | None = None
    order_cursor: str = ""
    discard_through: int = 0

    def is_slow(self, now: datetime) -> bool:
        return self.slow_until is not None and self.slow_until > now


class Room(msgspec.Struct, frozen=True):
    """Room of one subscription. in_flight: how many may be in progress in all; starts: how many may start now.

    status and until: what closes it, and until when, if time opens it. probe: the one that starts is a probe.
    """

    in_flight: int
    starts: int
    status: FlowStatus = FlowStatus.OPEN
    until: datetime | None = None
    probe: bool = False


class Result(msgspec.Struct, frozen=True):
    """Result of one attempt, as far as flow depends on it. error_code None: success."""

    saga_id: int
    error_code: str | None
    retry_after_seconds: float | None = None
    duration_ms: int = 0
    leased_at: datetime | None = None

    @property
    def is_failure(self) -> bool:
        """Whether the endpoint failed: not for our own faults, nor for answers about the payload."""
        return (
            self.error_code is not None
            and self.error_code not in UNCOUNTED
            and self.error_code not in PAYLOAD_CODES
        )


def room(settings: FlowSettings, flow: Flow, now: datetime) -> Room:
    """Return the room of a subscription."""
    if settings.paused_at is not None:
        return Room(0, 0, FlowStatus.PAUSED)
    if flow.retry_after_until is not None and flow.retry_after_until > now:
        return Room(0, 0, FlowStatus.RETRY_AFTER, flow.retry_after_until)
    if breaker_is_open(settings, flow):
        if flow.probe_at is not None and flow.probe_at > now:
            return Room(0, 0, FlowStatus.BREAKER_OPEN, flow.probe_at)
        return Room(1, 1, FlowStatus.BREAKER_OPEN, probe=True)
    limit = int(max(1.0, min(flow.in_flight_limit, settings.max_in_flight)))
    if settings.rate_count is None:
        return Room(limit, limit)
    tokens = tokens_left(settings, flow, now)
    if tokens < 1:
        return Room(limit, 0, FlowStatus.LIMITED, _next_token_at(settings, tokens, now))
    return Room(limit, min(limit, int(tokens)))


def breaker_is_open(settings: FlowSettings, flow: Flow) -> bool:
    return settings.circuit_breaker and flow.breaker_opened_at is not None


def tokens_left(settings: FlowSettings, flow: Flow, now: datetime) -> float:
    """Return the tokens in the bucket of a subscription that has a rate limit."""
    assert settings.rate_count is not None
    assert settings.rate_seconds is not None
    if flow.tokens is None or flow.tokens_at is None:
        return settings.rate_count
    seconds = max(0.0, (now - flow.tokens_at).total_seconds())
    return min(settings.rate_count, flow.tokens + seconds * settings.rate_count / settings.rate_seconds)


def next_start_at(settings: FlowSettings, flow: Flow, now: datetime) -> datetime | None:
    """Return when time opens room that is closed now; None when only something else than time opens it."""
    closed = room(settings, flow, now)
    return None if closed.starts else closed.until


def _next_token_at(settings: FlowSettings, tokens: float, now: datetime) -> datetime:
    assert settings.rate_count is not None
    assert settings.rate_seconds is not None
    seconds = (1 - tokens) * settings.rate_seconds / settings.rate_count
    return now + timedelta(seconds=max(seconds, MIN_WAIT_SECONDS))


def after_start(
    settings: FlowSettings, flow: Flow, given: Room, started: Sequence[int], now: datetime
) -> Flow:
    """Return the flow after attempts of these sagas were started into the given room."""
    if settings.rate_count is not None and started:
        tokens = tokens_left(settings, flow, now) - len(started)
        flow = replace(flow, tokens=tokens, tokens_at=now)
    if given.probe and started:
        flow = replace(flow, probe_saga_id=started[0])
    return flow


def makes_room(settings: FlowSettings, flow: Flow, in_flight: int) -> bool:
    """Return whether the end of an attempt may let another start: with less than half of the limit in progress, before
    that end, whatever was due found room when it came."""
    return in_flight * 2 >= min(flow.in_flight_limit, settings.max_in_flight)


def after_results(
    settings: FlowSettings, flow: Flow, results: Sequence[Result], in_flight: int, now: datetime
) -> Flow:
    """Return the flow after these results, oldest first. in_flight: how many were in progress before, these included.

    Returns the same flow where nothing changes: a success below the limit of a healthy subscription writes nothing.
    """
    is_full = in_flight >= int(min(flow.in_flight_limit, settings.max_in_flight))
    for result in results:
        flow = _after_speed(flow, result, now)
        if result.error_code is None:
            flow = _after_success(settings, flow, now, is_full=is_full)
        elif result.is_failure:
            flow = _after_failure(settings, flow, result, now)
        elif result.saga_id == flow.probe_saga_id:
            flow = replace(flow, probe_saga_id=None, probe_at=_next_probe_at(settings, flow.probes, now))
    return flow


def _after_speed(flow: Flow, result: Result, now: datetime) -> Flow:
    timed_out = result.error_code in (ErrorCode.TIMEOUT_CONNECT, ErrorCode.TIMEOUT_TOTAL)
    until = now + timedelta(seconds=SLOW_SECONDS)
    remembered = flow.slow_until is not None and flow.slow_until > now + timedelta(seconds=SLOW_SECONDS / 2)
    if remembered or not (timed_out or result.duration_ms > SLOW_MS):
        return flow
    return replace(flow, slow_until=until)


def _after_success(settings: FlowSettings, flow: Flow, now: datetime, *, is_full: bool) -> Flow:
    if flow.failures_in_a_row or flow.breaker_opened_at is not None:
        until = flow.retry_after_until
        flow = replace(
            flow,
            retry_after_until=until if until is not None and until > now else None,
            failures_in_a_row=0,
            breaker_opened_at=None,
            probes=0,
            probe_at=None,
            probe_saga_id=None,
        )
    most = min(settings.max_in_flight, MAX_IN_FLIGHT)
    if is_full and flow.in_flight_limit < most:
        flow = replace(flow, in_flight_limit=min(float(most), flow.in_flight_limit + 1))
    return flow


def _after_failure(settings: FlowSettings, flow: Flow, result: Result, now: datetime) -> Flow:
    flow = replace(_after_overload(flow, result, now), failures_in_a_row=flow.failures_in_a_row + 1)
    if result.error_code in RETRY_AFTER_CODES and result.retry_after_seconds:
        until = now + timedelta(seconds=min(result.retry_after_seconds, RETRY_AFTER_CAP_SECONDS))
        flow = replace(flow, retry_after_until=max(until, flow.retry_after_until or until))
    if flow.breaker_opened_at is None:
        if not settings.circuit_breaker or flow.failures_in_a_row < settings.breaker_failures:
            return flow
        return replace(flow, breaker_opened_at=now, probe_at=_next_probe_at(settings, 0, now))
    if result.saga_id != flow.probe_saga_id:
        return flow  # it was started before the breaker opened
    probes = flow.probes + 1
    return replace(flow, probes=probes, probe_at=_next_probe_at(settings, probes, now), probe_saga_id=None)


def _after_overload(flow: Flow, result: Result, now: datetime) -> Flow:
    halved_at = flow.limit_halved_at
    sent_before = halved_at is not None and result.leased_at is not None and result.leased_at <= halved_at
    if result.error_code not in OVERLOAD_CODES or sent_before:
        return flow
    return replace(flow, in_flight_limit=max(1.0, flow.in_flight_limit / 2), limit_halved_at=now)


def _next_probe_at(settings: FlowSettings, probes: int, now: datetime) -> datetime:
    """Return when the next probe is due: after a LONG_WAIT at a whole second, so that the probes of many subscriptions
    share their statements."""
    wait = probe_wait(settings, probes)
    at = now + wait
    if wait < LONG_WAIT or not at.microsecond:
        return at
    return at.replace(microsecond=0) + timedelta(seconds=1)


def probe_wait(settings: FlowSettings, probes: int) -> timedelta:
    """Return the wait before the next probe, after so many failed ones."""
    return timedelta(seconds=min(settings.probe_seconds * 2.0 ** min(probes, 20), LAST_PROBE_SECONDS))
