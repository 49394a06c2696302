"""Heads that the strict parser refuses: which are rewritten, to what, and which are refused after all."""

from itertools import pairwise

import pytest
from httptools import HttpResponseParser
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.lenient_heads import LenientHead, MalformedHead

OK = b"HTTP/1.1 200 OK\r\n"


def rewritten(answer: bytes) -> list[bytes]:
    """The lines of the strict head, and what is behind it. `answer` comes in one piece."""
    strict = LenientHead().feed(answer)
    assert strict is not None
    head, end, rest = strict.partition(b"\r\n\r\n")
    assert end
    return [*head.split(b"\r\n"), rest]


@pytest.mark.parametrize(
    ("headers", "framing"),
    [
        (b"", []),
        (b"Server : x\r\n", []),
        (b"Content Length: 2\r\n", []),
        (b"Content-Length: 2\r\n", [b"Content-Length: 2"]),
        (b"CONTENT-LENGTH\t : 2\r\n", [b"Content-Length: 2"]),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n", [b"Content-Length: 2"]),
        (b"Content-Length: 2, 02\r\n", [b"Content-Length: 2"]),
        (b"Content-Length:\n 2\r\n", [b"Content-Length: 2"]),
        (b"X: a\r\n 5\r\nContent-Length: 2\r\n", [b"Content-Length: 2"]),
        (b" 5\r\nContent-Length: 2\r\n", [b"Content-Length: 2"]),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", [b"Transfer-Encoding: chunked"]),
        (b"Content-Length: x\r\nTransfer-Encoding: Chunked\r\n", [b"Transfer-Encoding: chunked"]),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: ,chunked\r\n", [b"Transfer-Encoding: chunked"]),
        (b"Transfer-Encoding: chunked, gzip\r\nContent-Length: 2\r\n", []),
        (b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n", [b"Content-Length: 2"]),
        (b"Transfer-Encoding: \r\nContent-Length: 2\r\n", [b"Content-Length: 2"]),
        (b"Transfer-Encoding: chunked,\r\n", [b"Transfer-Encoding: chunked"]),
    ],
)
def test_the_rewritten_head_frames_the_body(headers: bytes, framing: list[bytes]) -> None:
    assert rewritten(OK + headers + b"\r\nrest") == [
        b"HTTP/1.1 200 OK",
        b"Connection: close",
        *framing,
        b"rest",
    ]


@pytest.mark.parametrize("status", [101, 204, 304])
def test_a_status_without_a_body_needs_no_framing(status: int) -> None:
    answer = b"HTTP/1.1 %d X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" % status
    assert rewritten(answer) == [b"HTTP/1.1 %d OK" % status, b"Connection: close", b""]


def test_interim_heads_are_dropped_with_their_headers() -> None:
    interim = b"\r\nHTTP/1.1 103 E\r\nContent-Length: 9\r\nRetry-After: 9\r\n 9\r\n\r\n"
    assert rewritten(interim * 3 + OK + b"\r\n") == [b"HTTP/1.1 200 OK", b"Connection: close", b""]


@pytest.mark.parametrize(
    ("value", "kept"),
    [(b" 7 ", [b"Retry-After: 7"]), (b" Fri,\r\n 1", [b"Retry-After: Fri, 1"]), (b"\x01", []), (b"\xff", [])],
)
def test_the_first_wait_is_kept(value: bytes, kept: list[bytes]) -> None:
    answer = b"HTTP/1.1 503 X\r\nRetry-After:" + value + b"\r\nRetry-After: 9\r\n\r\n"
    assert rewritten(answer) == [b"HTTP/1.1 503 OK", b"Connection: close", *kept, b""]


NOT_HTTP = "^not an HTTP/1 answer$"
NO_STATUS_LINE = "^not the status line of an HTTP/1 answer$"
NO_HEADER = "^a line that is not a header$"
NO_LENGTH = "^a length that is not one number$"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"ok", NOT_HTTP),
        (b"\r\nHTTP/2", NOT_HTTP),
        (b"http/1.1 200 OK\r\n", NOT_HTTP),
        (b"HTTP/1.x 200 OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 099 OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 2000 OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 20 OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 200OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1\t200 OK\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 200 a\rb\r\n", NO_STATUS_LINE),
        (b"HTTP/1.1 200 a\0b\r\n", NO_STATUS_LINE),
        (OK + b"foo\r\n\r\n", NO_HEADER),
        (OK + b": x\r\n\r\n", NO_HEADER),
        (OK + b"X(y): x\r\n\r\n", NO_HEADER),
        (OK + b"X: a\rb\r\n\r\n", NO_HEADER),
        (OK + b"X: a\0b\r\n\r\n", NO_HEADER),
        (OK + b"Content-Length: 1, 2\r\n\r\n", NO_LENGTH),
        (OK + b"Content-Length: 2,\r\n\r\n", NO_LENGTH),
        (OK + b"Content-Length: -2\r\n\r\n", NO_LENGTH),
        (OK + b"Content-Length: " + b"1" * 20 + b"\r\n\r\n", NO_LENGTH),
    ],
)
def test_it_is_refused_as_soon_as_it_is_certain(answer: bytes, reason: str) -> None:
    with pytest.raises(MalformedHead, match=reason):
        LenientHead().feed(answer)


@pytest.mark.parametrize("answer", [b"", b"\r", b"\r\n\n", b"HT", b"HTTP/1.1 200 O", OK + b"X: a\r\n"])
def test_what_may_become_a_head_is_waited_for(answer: bytes) -> None:
    assert LenientHead().feed(answer) is None


PIECES = st.sampled_from(
    [
        *(OK, b"HTTP/1.1 204 X\r\n", b"HTTP/1.1 103 E\n", b"\r\n", b"\n", b"A : b\r\n", b" \t9\r\n", b"X"),
        *(
            b"Content-Length: 2\r\n",
            b"Content-Length : 2, 3\n",
            b"Transfer-Encoding: chunked\r\n",
            b"\r",
            b":",
        ),
        *(b"Retry-After: 5\r\n", b"body", b"0"),
    ]
)
BEGINNINGS = st.sampled_from([b"", OK, b"HTTP/1.1 204 X\r\n", b"HTTP/1.1 103 E\r\n\r\n" + OK])
ANSWERS = st.tuples(BEGINNINGS, st.lists(PIECES, max_size=12).map(b"".join)).map(b"".join)


def fed(pieces: list[bytes]) -> bytes | type[MalformedHead] | None:
    head, behind = LenientHead(), b""
    strict: bytes | None = None
    for piece in pieces:
        if strict is not None:
            behind += piece
            continue
        try:
            strict = head.feed(piece)
        except MalformedHead:
            return MalformedHead
    return None if strict is None else strict + behind


@given(ANSWERS, st.lists(st.integers(0, 200), max_size=5))
def test_it_does_not_matter_in_which_pieces_it_comes(answer: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    pieces = [answer[begin:end] for begin, end in pairwise(places)]
    assert fed(pieces) == fed([answer])


@given(ANSWERS)
def test_the_strict_parser_takes_what_is_rewritten(answer: bytes) -> None:
    strict = fed([answer])
    if not isinstance(strict, bytes):
        return
    head = strict[: strict.index(b"\r\n\r\n") + 4]

    class Status:
        seen = 0

        def on_headers_complete(self) -> None:
            self.seen = parser.get_status_code()

    status = Status()
    parser = HttpResponseParser(status)
    parser.feed_data(head)
    assert status.seen == int(head[9:12])
    assert b"\r\nConnection: close\r\n" in head
