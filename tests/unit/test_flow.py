"""Flow control, row by row: what closes the room of a subscription, and what each result makes of its flow."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hooksaga.core.flow import (
    FIRST_LIMIT,
    LAST_PROBE_SECONDS,
    MAX_IN_FLIGHT,
    OVERLOAD_CODES,
    PAYLOAD_CODES,
    SLOW_MS,
    SLOW_SECONDS,
    Flow,
    FlowSettings,
    FlowStatus,
    Result,
    Room,
    after_results,
    after_start,
    makes_room,
    next_start_at,
    probe_wait,
    room,
    tokens_left,
)
from hooksaga.core.outcomes import UNCOUNTED, ErrorCode

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ANY = FlowSettings()
RATED = FlowSettings(rate_count=10, rate_seconds=5)
OPENED = Flow(failures_in_a_row=10, breaker_opened_at=NOW - SECOND, probe_at=NOW + 4 * SECOND)
PROBING = replace(OPENED, probe_at=NOW - SECOND, probe_saga_id=1)


def failed(error_code: str = "http_500", saga_id: int = 7, **how: object) -> Result:
    return Result(saga_id, error_code, **how)  # type: ignore[arg-type]


def after(flow: Flow, *results: Result, settings: FlowSettings = ANY, in_flight: int = 1) -> Flow:
    return after_results(settings, flow, results, in_flight, NOW)


# What closes the room, in this order


CLOSINGS: list[tuple[FlowSettings, Flow, FlowStatus]] = [
    (FlowSettings(paused_at=NOW), Flow(), FlowStatus.PAUSED),
    (ANY, Flow(retry_after_until=NOW + SECOND), FlowStatus.RETRY_AFTER),
    (ANY, OPENED, FlowStatus.BREAKER_OPEN),
    (RATED, Flow(tokens=0, tokens_at=NOW), FlowStatus.LIMITED),
]


def merged(first: int, last: int) -> tuple[FlowSettings, Flow]:
    """Everything that closes from one row of CLOSINGS to another, at once."""
    settings, flow = ANY, Flow()
    for one_settings, one_flow, _ in CLOSINGS[first : last + 1]:
        for name in FlowSettings.__struct_fields__:
            if getattr(one_settings, name) != getattr(ANY, name):
                settings = replace(settings, **{name: getattr(one_settings, name)})
        for name in Flow.__struct_fields__:
            if getattr(one_flow, name) != getattr(Flow(), name):
                flow = replace(flow, **{name: getattr(one_flow, name)})
    return settings, flow


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("last", range(4))
def test_the_first_of_what_closes_is_told(first: int, last: int) -> None:
    if first > last:
        return
    settings, flow = merged(first, last)
    closed = room(settings, flow, NOW)
    assert (closed.starts, closed.status) == (0, CLOSINGS[first][2])


def test_an_open_room_is_as_large_as_its_limit() -> None:
    assert room(ANY, Flow(), NOW) == Room(10, 10)
    assert room(ANY, Flow(in_flight_limit=37.9), NOW) == Room(37, 37)
    assert room(FlowSettings(max_in_flight=3), Flow(), NOW) == Room(3, 3)
    assert room(FlowSettings(max_in_flight=3), Flow(in_flight_limit=2.5), NOW) == Room(2, 2)


@pytest.mark.parametrize(
    ("settings", "flow", "until"),
    [
        (FlowSettings(paused_at=NOW), Flow(), None),
        (ANY, Flow(retry_after_until=NOW + 9 * SECOND), NOW + 9 * SECOND),
        (ANY, OPENED, NOW + 4 * SECOND),
        (RATED, Flow(tokens=0, tokens_at=NOW), NOW + SECOND / 2),
        (RATED, Flow(tokens=0.5, tokens_at=NOW), NOW + SECOND / 4),
        (ANY, Flow(), None),
    ],
)
def test_what_time_opens_says_when(settings: FlowSettings, flow: Flow, until: datetime | None) -> None:
    assert next_start_at(settings, flow, NOW) == until
    if until is not None:
        assert room(settings, flow, until).starts >= 1
        assert next_start_at(settings, flow, until) is None


def test_what_has_passed_closes_nothing() -> None:
    assert room(ANY, Flow(retry_after_until=NOW), NOW).status is FlowStatus.OPEN
    assert room(FlowSettings(circuit_breaker=False), OPENED, NOW).status is FlowStatus.OPEN


# The concurrency limit


def test_a_success_below_the_limit_changes_nothing() -> None:
    flow = Flow(in_flight_limit=10)
    assert after(flow, Result(1, None), in_flight=9) is flow


def test_a_success_grows_a_full_limit_by_one() -> None:
    assert after(Flow(in_flight_limit=10), Result(1, None), in_flight=10).in_flight_limit == 11
    grown = after(Flow(in_flight_limit=10), *[Result(n, None) for n in range(4)], in_flight=10)
    assert grown.in_flight_limit == 14


@pytest.mark.parametrize(("own", "most"), [(12, 12), (MAX_IN_FLIGHT, MAX_IN_FLIGHT)])
def test_a_limit_grows_to_its_maximum(own: int, most: int) -> None:
    settings = FlowSettings(max_in_flight=own)
    flow = Flow(in_flight_limit=most - 0.5)
    grown = after(flow, *[Result(n, None) for n in range(5)], settings=settings, in_flight=most)
    assert grown.in_flight_limit == most
    assert after(grown, Result(9, None), settings=settings, in_flight=most) is grown


@pytest.mark.parametrize("error_code", sorted(OVERLOAD_CODES))
def test_overload_halves_the_limit(error_code: str) -> None:
    halved = after(Flow(in_flight_limit=40), failed(error_code))
    assert (halved.in_flight_limit, halved.limit_halved_at) == (20, NOW)


@pytest.mark.parametrize("error_code", ["http_500", "http_404", "http_400", "tls_error", "dns_nxdomain"])
def test_other_failures_leave_the_limit(error_code: str) -> None:
    assert after(Flow(in_flight_limit=40), failed(error_code)).in_flight_limit == 40


def test_a_limit_is_halved_once_for_what_was_sent_before() -> None:
    before, later = NOW - 3 * SECOND, NOW + SECOND
    burst = [failed("http_503", n, leased_at=before) for n in range(8)]
    once = after(Flow(in_flight_limit=40), *burst)
    assert once.in_flight_limit == 20
    assert after(once, failed("http_503", leased_at=NOW)).in_flight_limit == 20
    assert after(once, failed("http_503", leased_at=later)).in_flight_limit == 10


def test_a_limit_is_at_least_one() -> None:
    flow = Flow(in_flight_limit=1.5)
    for n in range(5):
        flow = after(flow, failed("http_503", leased_at=NOW + n * SECOND))
    assert flow.in_flight_limit == 1
    assert room(FlowSettings(circuit_breaker=False), flow, NOW).starts == 1


@pytest.mark.parametrize(
    ("own", "limit", "in_flight", "makes"),
    [
        (1000, 10, 5, True),
        (1000, 10, 4, False),
        (4, 10, 2, True),
        (4, 10, 1, False),
        (1000, 1, 1, True),
        (1000, 2.5, 1, False),
    ],
)
def test_an_end_makes_room_from_half_of_the_limit_on(
    own: int, limit: float, in_flight: int, makes: bool
) -> None:
    settings = FlowSettings(max_in_flight=own)
    assert makes_room(settings, Flow(in_flight_limit=limit), in_flight) is makes


# The rate limit


def test_a_bucket_begins_full_and_holds_its_count() -> None:
    assert tokens_left(RATED, Flow(), NOW) == 10
    assert tokens_left(RATED, Flow(tokens=3, tokens_at=NOW - timedelta(days=9)), NOW) == 10
    assert tokens_left(RATED, Flow(tokens=3, tokens_at=NOW - SECOND), NOW) == 5
    assert tokens_left(RATED, Flow(tokens=3, tokens_at=NOW + SECOND), NOW) == 3  # the clock was set back


def test_each_start_takes_a_token() -> None:
    flow = after_start(RATED, Flow(in_flight_limit=50), Room(50, 10), [1, 2, 3], NOW)
    assert (flow.tokens, flow.tokens_at) == (7, NOW)
    assert room(RATED, flow, NOW) == Room(50, 7)
    assert after_start(RATED, flow, Room(50, 7), [], NOW + SECOND) is flow
    assert after_start(ANY, Flow(), Room(10, 10), [1], NOW) == Flow()


def test_a_concurrency_limit_holds_below_the_tokens() -> None:
    assert room(RATED, Flow(in_flight_limit=4), NOW) == Room(4, 4)


@given(
    count=st.integers(1, 100_000),
    seconds=st.floats(1, 86_400),
    steps=st.lists(st.tuples(st.floats(0, 200_000), st.integers(0, 2000)), max_size=40),
)
def test_no_more_starts_than_the_bucket_gives(
    count: int, seconds: float, steps: Sequence[tuple[float, int]]
) -> None:
    settings, flow, now = FlowSettings(rate_count=count, rate_seconds=seconds), Flow(), NOW
    flow = replace(flow, in_flight_limit=MAX_IN_FLIGHT)
    started = 0
    for pause, wanted in steps:
        now += timedelta(seconds=pause)
        given_room = room(settings, flow, now)
        some = list(range(min(wanted, given_room.starts)))
        flow = after_start(settings, flow, given_room, some, now)
        started += len(some)
        assert 0 <= tokens_left(settings, flow, now) <= count
        assert started <= count + (now - NOW).total_seconds() * count / seconds + 0.01
        opens_at = next_start_at(settings, flow, now)
        assert (opens_at is None) == (room(settings, flow, now).starts > 0)
        assert opens_at is None or opens_at > now
    assert 0 <= tokens_left(settings, flow, now) <= count


# Retry-After


@pytest.mark.parametrize("error_code", ["http_429", "http_503"])
def test_retry_after_closes_for_all_and_is_capped_at_an_hour(error_code: str) -> None:
    asked = after(Flow(), failed(error_code, retry_after_seconds=120))
    assert asked.retry_after_until == NOW + 120 * SECOND
    assert room(ANY, asked, NOW) == Room(0, 0, FlowStatus.RETRY_AFTER, NOW + 120 * SECOND)
    longest = after(Flow(), failed(error_code, retry_after_seconds=86_400))
    assert longest.retry_after_until == NOW + 3600 * SECOND


def test_retry_after_is_only_lengthened() -> None:
    flow = Flow(retry_after_until=NOW + 60 * SECOND)
    assert after(flow, failed("http_429", retry_after_seconds=5)).retry_after_until == NOW + 60 * SECOND
    assert after(flow, failed("http_429", retry_after_seconds=90)).retry_after_until == NOW + 90 * SECOND


@pytest.mark.parametrize(("error_code", "seconds"), [("http_500", 60), ("http_429", None), ("http_503", 0)])
def test_other_answers_ask_for_no_time(error_code: str, seconds: float | None) -> None:
    assert after(Flow(), failed(error_code, retry_after_seconds=seconds)).retry_after_until is None


@pytest.mark.parametrize(("seconds", "is_kept"), [(-1, False), (0, False), (1, True)])
def test_a_success_clears_a_time_that_is_over(seconds: int, is_kept: bool) -> None:
    """With a write that it makes anyway: the index of those that wait for that time stays small."""
    flow = Flow(retry_after_until=NOW + seconds * SECOND, failures_in_a_row=1)
    done = after(flow, Result(1, None))
    assert done == Flow(retry_after_until=flow.retry_after_until if is_kept else None)
    quiet = Flow(retry_after_until=NOW - SECOND)
    assert after(quiet, Result(1, None)) is quiet


# The circuit breaker


def test_the_breaker_opens_after_so_many_failures_in_a_row() -> None:
    flow = after(Flow(), *[failed(saga_id=n) for n in range(9)])
    assert (flow.failures_in_a_row, flow.breaker_opened_at) == (9, None)
    opened = after(flow, failed())
    assert (opened.breaker_opened_at, opened.probe_at, opened.probes) == (NOW, NOW + 5 * SECOND, 0)
    assert room(ANY, opened, NOW + 4 * SECOND) == Room(0, 0, FlowStatus.BREAKER_OPEN, NOW + 5 * SECOND)
    assert room(ANY, opened, NOW + 5 * SECOND) == Room(1, 1, FlowStatus.BREAKER_OPEN, probe=True)


def test_a_success_in_between_starts_the_count_anew() -> None:
    flow = after(Flow(), *[failed(saga_id=n) for n in range(9)], Result(1, None), failed())
    assert (flow.failures_in_a_row, flow.breaker_opened_at) == (1, None)


def test_a_subscription_may_do_without_a_breaker() -> None:
    settings = FlowSettings(circuit_breaker=False)
    flow = after(Flow(), *[failed(saga_id=n) for n in range(50)], settings=settings)
    assert (flow.failures_in_a_row, flow.breaker_opened_at) == (50, None)
    assert room(settings, flow, NOW).status is FlowStatus.OPEN


def test_the_systems_settings_hold() -> None:
    settings = FlowSettings(breaker_failures=2, probe_seconds=0.5)
    flow = after(Flow(), failed(), failed(saga_id=8), settings=settings)
    assert (flow.breaker_opened_at, flow.probe_at) == (NOW, NOW + SECOND / 2)


@pytest.mark.parametrize("error_code", sorted({*UNCOUNTED, *PAYLOAD_CODES}))
def test_our_faults_and_answers_about_the_payload_say_nothing_about_the_endpoint(error_code: str) -> None:
    flow = Flow(failures_in_a_row=9)
    assert after(flow, failed(error_code)) == flow
    assert not failed(error_code).is_failure


def test_each_failed_probe_doubles_the_wait_up_to_ten_minutes() -> None:
    waits = [probe_wait(ANY, probes).total_seconds() for probes in range(12)]
    assert waits[:8] == [5, 10, 20, 40, 80, 160, 320, 600]
    assert set(waits[7:]) == {LAST_PROBE_SECONDS}
    assert probe_wait(ANY, 10**9).total_seconds() == LAST_PROBE_SECONDS
    flow, given_room = OPENED, Room(1, 1, FlowStatus.BREAKER_OPEN, probe=True)
    for wait in waits[1:9]:
        flow = after_start(ANY, flow, given_room, [1], NOW)
        assert flow.probe_saga_id == 1
        flow = after(flow, failed(saga_id=1))
        assert (flow.probe_at, flow.probe_saga_id) == (NOW + wait * SECOND, None)


@pytest.mark.parametrize(("probes", "seconds"), [(0, 10.0), (1, 20.0), (6, 600.0)])
def test_long_waits_for_a_probe_end_at_a_whole_second(probes: int, seconds: float) -> None:
    """So that the probes of many subscriptions share their statements."""
    now = NOW + 0.3 * SECOND
    flow = after_results(ANY, replace(PROBING, probes=probes), [failed(saga_id=1)], 1, now)
    assert flow.probe_at == NOW + (seconds + 1) * SECOND


def test_a_short_wait_for_a_probe_is_exact() -> None:
    now = NOW + 0.3 * SECOND
    opened = after_results(ANY, Flow(failures_in_a_row=9), [failed(saga_id=1)], 1, now)
    assert opened.probe_at == now + 5 * SECOND


def test_results_from_before_the_breaker_opened_move_no_probe() -> None:
    late = after(PROBING, failed(saga_id=9))
    assert (late.probe_at, late.probes, late.probe_saga_id) == (PROBING.probe_at, 0, 1)
    assert late.failures_in_a_row == PROBING.failures_in_a_row + 1


def test_a_probe_without_a_verdict_is_tried_again_after_the_same_wait() -> None:
    again = after(PROBING, failed(ErrorCode.LEASE_EXPIRED, saga_id=1))
    assert (again.probe_at, again.probes, again.probe_saga_id) == (NOW + 5 * SECOND, 0, None)
    assert again.breaker_opened_at == PROBING.breaker_opened_at


@pytest.mark.parametrize("saga_id", [1, 9])
def test_any_success_closes_the_breaker(saga_id: int) -> None:
    closed = after(PROBING, Result(saga_id, None))
    assert closed == replace(
        PROBING, failures_in_a_row=0, breaker_opened_at=None, probes=0, probe_at=None, probe_saga_id=None
    )
    assert room(ANY, closed, NOW).status is FlowStatus.OPEN


# Slow endpoints


@pytest.mark.parametrize(
    ("result", "is_slow"),
    [
        (Result(1, None, duration_ms=SLOW_MS), False),
        (Result(1, None, duration_ms=SLOW_MS + 1), True),
        (failed("timeout_total"), True),
        (failed("timeout_connect"), True),
        (failed("http_500", duration_ms=10), False),
    ],
)
def test_what_takes_long_makes_its_subscription_slow_for_a_minute(result: Result, is_slow: bool) -> None:
    flow = after(Flow(), result)
    assert flow.is_slow(NOW) is is_slow
    assert not flow.is_slow(NOW + (SLOW_SECONDS + 1) * SECOND)


@pytest.mark.parametrize(("seconds", "renewed"), [(29.9, False), (30, True), (59, True), (61, True)])
def test_slowness_is_renewed_in_the_second_half_of_its_time(seconds: float, renewed: bool) -> None:
    slow = Result(1, None, duration_ms=SLOW_MS + 1)
    first = after_results(ANY, Flow(), [slow], 1, NOW)
    later = NOW + seconds * SECOND
    again = after_results(ANY, first, [slow], 1, later)
    assert again.slow_until == (later + SLOW_SECONDS * SECOND if renewed else first.slow_until)
    assert not first.is_slow(NOW + SLOW_SECONDS * SECOND)


@pytest.mark.parametrize("half", [{"tokens": 3.0}, {"tokens_at": NOW}])
def test_a_bucket_that_is_half_known_is_full(half: dict[str, object]) -> None:
    assert tokens_left(RATED, Flow(**half), NOW) == 10  # type: ignore[arg-type]


def test_a_success_ends_the_count_of_probes() -> None:
    assert after(replace(PROBING, probes=3), Result(1, None)).probes == 0


def test_a_slow_subscription_is_not_written_with_each_result() -> None:
    flow = after(Flow(), Result(1, None, duration_ms=SLOW_MS + 1))
    assert after(flow, Result(2, None, duration_ms=SLOW_MS + 1)) is flow


# Whatever happens


CODES = st.sampled_from(
    [None, "http_500", "http_503", "http_429", "timeout_total", "http_400", "lease_expired"]
)
STEPS = st.lists(
    st.tuples(st.floats(0, 5000), st.integers(0, 40), CODES, st.none() | st.floats(0, 100_000)), max_size=60
)


@given(
    steps=STEPS,
    most=st.integers(1, 1000),
    rate=st.none() | st.tuples(st.integers(1, 1000), st.floats(1, 3600)),
    breaker=st.booleans(),
)
def test_room_is_never_negative_and_never_beyond_the_limits(
    steps: Sequence[tuple[float, int, str | None, float | None]],
    most: int,
    rate: tuple[int, float] | None,
    breaker: bool,
) -> None:
    count, seconds = rate or (None, None)
    settings = FlowSettings(None, most, count, seconds, breaker)
    flow, now, in_flight = Flow(), NOW, list[int]()
    for number, (pause, wanted, code, retry_after) in enumerate(steps):
        now += timedelta(seconds=pause)
        given_room = room(settings, flow, now)
        assert 0 <= given_room.starts <= given_room.in_flight <= most
        size = max(0, min(given_room.starts, given_room.in_flight - len(in_flight), wanted))
        some = [number * 100 + n for n in range(size)]
        flow = after_start(settings, flow, given_room, some, now)
        in_flight += some
        assert given_room.probe == (flow.breaker_opened_at is not None and given_room.starts > 0 and breaker)
        done, in_flight = in_flight[: wanted // 2], in_flight[wanted // 2 :]
        results = [Result(one, code, retry_after, 10, now) for one in done]
        flow = after_results(settings, flow, results, len(done) + len(in_flight), now)
        assert 1 <= flow.in_flight_limit <= MAX_IN_FLIGHT
        assert (flow.breaker_opened_at is None) == (flow.probe_at is None)
        assert flow.tokens is None or count is None or 0 <= flow.tokens <= count
        assert flow.retry_after_until is None or flow.retry_after_until <= now + timedelta(hours=1)
        if flow.breaker_opened_at is None:
            assert flow.probe_saga_id is None
            assert not breaker or flow.failures_in_a_row < settings.breaker_failures
    assert 0 <= room(settings, flow, now).starts <= most


def test_a_limit_begins_at_ten() -> None:
    assert FIRST_LIMIT == Flow().in_flight_limit == 10
