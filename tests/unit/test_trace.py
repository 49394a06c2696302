"""Traces: what is read of a producer's, and what the receiver gets."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.trace import (
    correlation_id_of,
    delivery_traceparent,
    is_correlation_id,
    read_traceparent,
    span_id_of,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
EVENT = UUID("01a21f3b-ea21-7df2-8880-a4e8e3eb3d94")
VALID = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[0-3]")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01"),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"  00-{TRACE}-{SPAN}-03\t", f"00-{TRACE}-{SPAN}-03"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # flags that nobody knows are not passed on
        (f"01-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01"),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", f"00-{TRACE}-{SPAN}-01"),
    ],
)
def test_a_valid_trace_is_kept_in_one_form(sent: str, kept: str) -> None:
    assert read_traceparent([sent]) == kept


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        ["00"],
        [f"00-{TRACE}-{SPAN}"],
        [f"00-{TRACE}-{SPAN}-1"],
        [f"00-{TRACE}-{SPAN}-01-more"],
        [f"00-{TRACE}-{SPAN}-01."],
        [f"cc-{TRACE}-{SPAN}-01.more"],
        [f"ff-{TRACE}-{SPAN}-01"],
        [f"00-{'0' * 32}-{SPAN}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [f"00-{TRACE.upper()}-{SPAN}-01"],
        [f"00-{TRACE[:-1]}-{SPAN}-01"],
        [f"00-{TRACE[:-1]}٣-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-01\nx: y"],
        ["x" * 1_000_000],
        [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01"],
    ],
    ids=lambda values: ascii(values)[:40].replace("\\", "/"),
)
def test_what_is_no_trace_is_none(values: list[str]) -> None:
    assert read_traceparent(values) is None


@given(st.text())
def test_whatever_comes_nothing_is_raised_and_what_is_kept_is_valid(text: str) -> None:
    kept = read_traceparent([text])
    assert kept is None or VALID.fullmatch(kept)


def test_an_event_without_a_trace_is_a_trace_of_its_own() -> None:
    assert correlation_id_of(EVENT, None) == EVENT.hex
    assert correlation_id_of(EVENT, f"00-{TRACE}-{SPAN}-01") == TRACE
    assert is_correlation_id(EVENT.hex)
    assert not is_correlation_id(f"{EVENT.hex}\n")


@given(st.integers(1, 2**63 - 1), st.integers(1, 100))
def test_the_receiver_gets_a_valid_trace_that_is_always_the_same(job_id: int, claim: int) -> None:
    sent = delivery_traceparent(EVENT, None, job_id, claim)
    assert VALID.fullmatch(sent)
    assert sent == delivery_traceparent(EVENT, None, job_id, claim)
    assert sent.split("-")[1:3] == [EVENT.hex, span_id_of(job_id, claim)]


def test_each_attempt_is_a_span_of_its_own() -> None:
    spans = {span_id_of(job, claim) for job in range(1, 3000) for claim in (1, 2)}
    assert len(spans) == 2 * 2999


@pytest.mark.parametrize("flags", ["00", "01", "02", "03"])
def test_the_producer_decides_what_is_sampled(flags: str) -> None:
    sent = delivery_traceparent(EVENT, f"00-{TRACE}-{SPAN}-{flags}", 7, 1)
    assert sent == f"00-{TRACE}-{span_id_of(7, 1)}-{flags}"
