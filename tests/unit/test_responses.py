"""Stored parts of a response."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.responses import (
    EXCERPT_BYTES,
    body_excerpt,
    headers_excerpt,
    read_headers,
    retry_after_seconds,
)

# Sun, 06 Nov 1994 08:49:37 GMT is 784111777.
NOW = 784111777 - 120.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 10 ", 10),
        ("1", 1),
        ("3600", 3600),
        ("3601", 3600),
        ("86400", 3600),
        ("99999999999999999999", 3600),
        ("9" * 500, 3600),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 120),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 120),
        ("Sun Nov  6 08:49:37 1994", 120),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
    ],
)
def test_a_wait_is_read_and_capped(value: str, seconds: int) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process is fixed here")
def test_dates_are_in_utc_wherever_this_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert retry_after_seconds("Sun Nov  6 08:49:37 1994", NOW) == 120
        assert retry_after_seconds("Sun, 06 Nov 1994 08:49:37 GMT", NOW) == 120
    finally:
        monkeypatch.undo()
        time.tzset()


NO_WAIT = [
    *(
        "",
        " ",
        "0",
        "-1",
        "+5",
        "1.5",
        "soon",
        "10, 20",
        "1e3",
        "0x10",
        "\u0661\u0662",
        "NaN",
        "\udcff",
        "1\0",
    ),
    *("Sun, 06 Nov 1994 08:47:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 10000 23:59:59 GMT"),
    *("Mon, 99 Foo 2020 99:99:99 GMT", "9" * 6000, "(" * 5000, "1994-11-06"),
]


@pytest.mark.parametrize("value", [None, *NO_WAIT])
def test_nothing_to_wait_for(value: str | None) -> None:
    assert retry_after_seconds(value, NOW) is None


@given(st.text(), st.floats(min_value=0, max_value=4e9))
def test_any_value_gives_a_wait_within_the_cap_or_none(value: str, now: float) -> None:
    seconds = retry_after_seconds(value, now)
    assert seconds is None or 1 <= seconds <= 3600


@pytest.mark.parametrize("character", ["a", "\u00e9", "\u20ac", "\U0001f600"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_no_character_is_split(character: str, shift: int) -> None:
    text = "x" * shift + character * EXCERPT_BYTES + "x"
    excerpt, truncated = body_excerpt(text.encode())
    assert truncated
    assert text.startswith(excerpt)
    assert EXCERPT_BYTES - 4 < len(excerpt.encode()) <= EXCERPT_BYTES


@pytest.mark.parametrize(("extra", "truncated"), [(-1, False), (0, False), (1, True)])
def test_the_limit_is_exact(extra: int, truncated: bool) -> None:
    excerpt, cut = body_excerpt(b"a" * (EXCERPT_BYTES + extra))
    assert cut is truncated
    assert len(excerpt) == min(EXCERPT_BYTES, EXCERPT_BYTES + extra)


def test_undecodable_bytes_are_replaced_and_nul_is_removed() -> None:
    assert body_excerpt(b"a\0b\xff\r\n\x1b[31m\x7f") == ("ab\ufffd\r\n\x1b[31m\x7f", False)
    assert body_excerpt(b"caf\xc3") == ("caf\ufffd", False)
    assert body_excerpt(b"") == ("", False)


@given(st.binary(max_size=40), st.integers(min_value=0, max_value=8))
def test_every_body_becomes_text_that_can_be_stored(tail: bytes, shift: int) -> None:
    excerpt, _ = body_excerpt(b"a" * (EXCERPT_BYTES - shift) + tail)
    assert "\0" not in excerpt
    excerpt.encode("utf-8")


@pytest.mark.parametrize(
    "character", ["\u0080", "\u00e9", "\u07ff", "\u0800", "\u20ac", "\uffff", "\U00010000", "\U0010ffff"]
)
@pytest.mark.parametrize("room", range(1, 5))
def test_the_last_character_is_kept_whole_or_not_at_all(character: str, room: int) -> None:
    """`room` bytes are left where the character begins."""
    before = "a" * (EXCERPT_BYTES - room)
    kept, truncated = body_excerpt((before + character + "b" * 4).encode())
    size = len(character.encode())
    assert truncated
    assert kept == before + (character + "b" * (room - size) if size <= room else "")


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        (b"\xc0", ""),
        (b"\xc1", ""),
        (b"\xff", ""),
        (b"\x80", "\ufffd"),
        (b"\x80\x80\x80\x80", "\ufffd" * 4),
        (b"a\x80", "a\ufffd"),
    ],
)
def test_bytes_that_are_no_character_at_the_limit(tail: bytes, kept: str) -> None:
    """The beginning of a character is dropped, invalid bytes are replaced."""
    before = b"a" * (EXCERPT_BYTES - len(tail))
    assert body_excerpt(before + tail + b"more") == (before.decode() + kept, True)


def test_a_date_with_an_offset_is_read_with_it() -> None:
    assert retry_after_seconds("Sun, 06 Nov 1994 09:49:37 +0100", NOW) == 120


@pytest.mark.parametrize("value", ["\n10", "10\x0b", "X10X"])
def test_only_blanks_and_tabs_around_a_number_are_not_part_of_it(value: str) -> None:
    assert retry_after_seconds(value, NOW) is None


def test_headers_are_lines_without_the_values_of_cookies() -> None:
    headers = [
        (b"Content-Type", b"text/plain"),
        (b"SET-COOKIE", b"session=secret"),
        (b"X-Caf\xc3\xa9", b"\xff\x00 a"),
    ]
    excerpt = headers_excerpt(headers)
    assert excerpt is not None
    assert "secret" not in excerpt
    assert "\0" not in excerpt
    assert read_headers(excerpt) == {
        "content-type": "text/plain",
        "set-cookie": "***",
        "x-caf\ufffd\ufffd": "\ufffd a",
    }
    assert headers_excerpt([]) is None


def test_repeated_headers_are_joined_and_long_ones_cut() -> None:
    assert read_headers(headers_excerpt([(b"a", b"1: 2"), (b"b", b""), (b"A", b"3")]) or "") == {
        "a": "1: 2, 3",
        "b": "",
    }
    many = headers_excerpt([(b"x-%d" % number, b"y" * 100) for number in range(100)])
    assert many is not None
    assert 3_900 < len(many) <= 4_096
    assert all(value == "y" * 100 for value in read_headers(many).values())
    assert headers_excerpt([(b"x", b"y" * 5_000)]) is None


@pytest.mark.parametrize(("size", "kept"), [(4_095, True), (4_096, False)])
def test_a_line_has_room_with_its_line_end(size: int, kept: bool) -> None:
    excerpt = headers_excerpt([(b"x", b"y" * (size - len("x: ")))])
    assert excerpt == ("x: ".ljust(size, "y") if kept else None)


def test_a_header_cannot_make_a_line_of_another() -> None:
    assert headers_excerpt([(b"x", b"a\nset-cookie: b\rc\0d")]) == "x: a set-cookie: b cd"
