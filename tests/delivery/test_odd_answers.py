"""Answers whose head is odd: each gives the same outcome every time, and a connection is kept only where it is safe.

The right outcome is what curl, Go's net/http and Python's requests make of the same bytes, where at least two of them
agree; a length that RFC 9112 §6.3 calls invalid is refused.
"""

import asyncio
from dataclasses import dataclass

import pytest

from hooksaga.adapters.http_connections import MAX_HEAD_BYTES
from hooksaga.adapters.http_sender import HttpSender
from tests.delivery.attempts import post
from tests.delivery.hostile_receiver import Authority, Behaviour, Exchange, receiver
from tests.hostile_cases import note

pytestmark = [pytest.mark.timeout(20), pytest.mark.hostile("Receivers")]

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH_2 = b"Content-Length: 2\r\n\r\nok"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


@dataclass(frozen=True)
class Right:
    """status None: protocol_error. closes: the receiver ends the connection behind its answer."""

    answer: bytes
    status: int | None = 200
    body: str = "ok"
    kept: bool = False
    closes: bool = False


def cookies(count: int) -> bytes:
    return (
        OK + b"Set-Cookie: a=" + b"x" * 1000 + (b"\r\nSet-Cookie: a=" + b"x" * 1000) * (count - 1) + b"\r\n"
    )


FRAMING = {
    "length and chunks": Right(OK + b"Content-Length: 2\r\n" + CHUNKED),
    "chunks and another length": Right(
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 250\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    ),
    "chunks and a length in words": Right(OK + b"Content-Length: abc\r\n" + CHUNKED),
    "chunks and two lengths": Right(OK + b"Content-Length: 1\r\nContent-Length: 3\r\n" + CHUNKED),
    "gzip, chunked": Right(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", kept=True),
    "chunked twice": Right(OK + b"Transfer-Encoding: chunked\r\n" + CHUNKED, kept=True),
    "chunked in HTTP/1.0": Right(b"HTTP/1.0 200 OK\r\n" + CHUNKED, closes=True),
    "identity and a length": Right(OK + b"Transfer-Encoding: identity\r\n" + LENGTH_2),
    "an empty coding and a length": Right(OK + b"Transfer-Encoding:\r\n" + LENGTH_2),
    "an unknown coding": Right(OK + b"Transfer-Encoding: x\r\n\r\nok", closes=True),
    "chunked, then a blank before the colon": Right(
        OK + b"Transfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    ),
    "no line end behind the last chunk": Right(
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", closes=True
    ),
    "two equal lengths": Right(OK + b"Content-Length: 2\r\n" + LENGTH_2),
    "a list of equal lengths": Right(OK + b"Content-Length: 2, 2\r\n\r\nok"),
    "a list of other lengths": Right(OK + b"Content-Length: 2, 3\r\n\r\nok", None),
    "two other lengths": Right(OK + b"Content-Length: 3\r\n" + LENGTH_2, None),
    "a length with a plus": Right(OK + b"Content-Length: +2\r\n\r\nok", None),
    "a negative length": Right(OK + b"Content-Length: -1\r\n\r\nok", None, closes=True),
    "an empty length": Right(OK + b"Content-Length: \r\n\r\nok", None),
    "a length of 5,000 digits": Right(OK + b"Content-Length: " + b"2" * 5000 + b"\r\n\r\nok", None),
    "a blank before the colon of the length": Right(OK + b"Content-Length : 2\r\n\r\nok"),
    "a length on a second line": Right(OK + b"Content-Length:\r\n 2\r\n\r\nok"),
}
STATUS_LINE = {
    "no reason phrase": Right(b"HTTP/1.1 200\r\n" + LENGTH_2, kept=True),
    "a blank for a reason phrase": Right(b"HTTP/1.1 200 \r\n" + LENGTH_2, kept=True),
    "a reason phrase in UTF-8": Right("HTTP/1.1 200 已接受 ✓\r\n".encode() + LENGTH_2, kept=True),
    "a reason phrase in Latin-1": Right(b"HTTP/1.1 200 Accept\xe9\r\n" + LENGTH_2, kept=True),
    "two blanks before the status": Right(b"HTTP/1.1  200 OK\r\n" + LENGTH_2),
    "blank line first": Right(b"\r\n" + OK + LENGTH_2, kept=True),
    "HTTP/1.2": Right(b"HTTP/1.2 200 OK\r\n" + LENGTH_2),
    "HTTP/0.9": Right(b"HTTP/0.9 200 OK\r\n" + LENGTH_2, None),
    "HTTP/2": Right(b"HTTP/2 200 OK\r\n" + LENGTH_2, None),
    "HTTP/2.0": Right(b"HTTP/2.0 200 OK\r\n" + LENGTH_2, None),
    "http/1.1 in small letters": Right(b"http/1.1 200 OK\r\n" + LENGTH_2, None),
    "RTSP/1.0": Right(b"RTSP/1.0 200 OK\r\n" + LENGTH_2, None),
    "text glued to the status": Right(b"HTTP/1.1 200OK\r\n" + LENGTH_2, None),
    "two status lines": Right(OK + OK + LENGTH_2, None),
    "CR alone ends the lines": Right(b"HTTP/1.1 200 OK\rContent-Length: 2\r\r\nok", None, closes=True),
    "status 299": Right(b"HTTP/1.1 299 Fine\r\nContent-Length: 0\r\n\r\n", 299, "", kept=True),
}
HEADERS = {
    "a blank before a colon": Right(OK + b"Server : x\r\n" + LENGTH_2),
    "a blank in a name": Right(OK + b"My Header: x\r\n" + LENGTH_2),
    "no colon": Right(OK + b"foo\r\n" + LENGTH_2, None),
    "an empty name": Right(OK + b": x\r\n" + LENGTH_2, None),
    "a name in UTF-8": Right(OK + "Céntro: x\r\n".encode() + LENGTH_2, None),
    "brackets in a name": Right(OK + b"X-Foo(bar): x\r\n" + LENGTH_2, None),
    "NUL in a value": Right(OK + b"X: a\0b\r\n" + LENGTH_2, None),
    "CR in a value": Right(OK + b"X: a\rb\r\n" + LENGTH_2, None),
    "a value on two lines": Right(OK + b"X-A: a\r\n b\r\n" + LENGTH_2),
    "tabs in a value": Right(OK + b"X:\ta\tb\t\r\n" + LENGTH_2, kept=True),
    "control characters in a value": Right(OK + b"X: a\x01\x1b[0mb\x7f\r\n" + LENGTH_2),
    "40 KB of cookies": Right(cookies(40) + LENGTH_2, kept=True),
    "80 KB of cookies": Right(cookies(80) + LENGTH_2, kept=True),
    "300 headers": Right(
        OK + b"".join(b"X-%d: a\r\n" % number for number in range(300)) + LENGTH_2, kept=True
    ),
    "a head of 256 KiB": Right(
        OK
        + b"X: "
        + b"a" * (MAX_HEAD_BYTES - len(OK + b"X: \r\nContent-Length: 2\r\n\r\n"))
        + b"\r\n"
        + LENGTH_2,
        kept=True,
    ),
    "a head of one byte more": Right(
        OK
        + b"X: "
        + b"a" * (MAX_HEAD_BYTES - len(OK + b"X: \r\nContent-Length: 2\r\n\r\n") + 1)
        + b"\r\n"
        + LENGTH_2,
        None,
    ),
    "an odd head of 300 KB": Right(OK + b"A : b\r\nX: " + b"a" * 300_000 + b"\r\n" + LENGTH_2, None),
    "Upgrade to h2": Right(
        OK + b"Upgrade: h2,h2c\r\nConnection: Upgrade, Keep-Alive\r\n" + LENGTH_2, kept=True
    ),
    "Upgrade without a length": Right(OK + b"Upgrade: h2\r\nConnection: Upgrade\r\n\r\nok", closes=True),
    "Proxy-Connection: close": Right(OK + b"Proxy-Connection: close\r\n" + LENGTH_2),
}
NO_BODY = {
    "204": Right(b"HTTP/1.1 204 X\r\n\r\n", 204, "", kept=True),
    "204 with length 0": Right(b"HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n", 204, "", kept=True),
    "204 with a length": Right(b"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\n", 204, ""),
    "204 with a body": Right(b"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\nok", 204, ""),
    "204 with chunks": Right(b"HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", 204, ""),
    "204 with a coding": Right(b"HTTP/1.1 204 X\r\nTransfer-Encoding: gzip\r\n\r\n", 204, ""),
    "204 with two other lengths": Right(
        b"HTTP/1.1 204 X\r\nContent-Length: 0\r\nContent-Length: 2\r\n\r\n", 204, ""
    ),
    "204 with a negative length": Right(b"HTTP/1.1 204 X\r\nContent-Length: -1\r\n\r\n", 204, ""),
    "304": Right(b"HTTP/1.1 304 X\r\n\r\n", 304, "", kept=True),
    "304 with a length": Right(b"HTTP/1.1 304 X\r\nContent-Length: 2\r\n\r\n", 304, ""),
    "304 with chunks": Right(b"HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n\r\n", 304, ""),
    "205 until the end": Right(b"HTTP/1.1 205 X\r\n\r\n", 205, "", closes=True),
    "101 without Upgrade": Right(b"HTTP/1.1 101 X\r\n\r\n", 101, ""),
    "100 first": Right(b"HTTP/1.1 100 C\r\n\r\n" + OK + LENGTH_2, kept=True),
    "100 with a length first": Right(b"HTTP/1.1 100 C\r\nContent-Length: 2\r\n\r\n" + OK + LENGTH_2),
    "103 with chunks first": Right(b"HTTP/1.1 103 E\r\nTransfer-Encoding: chunked\r\n\r\n" + OK + LENGTH_2),
    "100 with Connection: close first": Right(b"HTTP/1.1 100 C\r\nConnection: close\r\n\r\n" + OK + LENGTH_2),
    "100 with an odd header first": Right(b"HTTP/1.1 100 C\r\nA : b\r\n\r\n" + OK + LENGTH_2),
    "100 with a body first": Right(b"HTTP/1.1 100 C\r\nContent-Length: 2\r\n\r\nxx" + OK + LENGTH_2, None),
    "bytes behind the body": Right(OK + LENGTH_2 + b"EXTRA"),
}
ANSWERS = {**FRAMING, **STATUS_LINE, **HEADERS, **NO_BODY}


def answering(right: Right) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(right.answer)
        if right.closes:
            exchange.writer.close()

    return behave


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_odd_answer_gives_its_status_or_none(
    sender: HttpSender, authority: Authority, name: str
) -> None:
    right = ANSWERS[name]
    async with receiver(answering(right), authority.tls()) as receiving:
        for _ in range(2):
            outcome = await post(sender, receiving.url())
            if right.status is None:
                assert (outcome.error_code, outcome.response_status) == ("protocol_error", None)
            else:
                assert (outcome.response_status, outcome.response_body) == (right.status, right.body)
            assert outcome.duration_ms < 2500
        note("connection kept" if receiving.connections == 1 else "connection closed")
        assert (len(receiving.requests), receiving.connections) == (2, 1 if right.kept else 2)


async def test_an_odd_head_still_says_when_to_come_again(sender: HttpSender, authority: Authority) -> None:
    head = b"HTTP/1.1 503 X\r\nA : b\r\nRetry-After: 7\r\nRetry-After: 8\r\nContent-Length: 0\r\n\r\n"
    async with receiver(answering(Right(head)), authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
    assert (outcome.error_code, outcome.retry_after_seconds) == ("http_503", 7)


async def test_an_odd_head_in_many_pieces_is_the_same_head(sender: HttpSender, authority: Authority) -> None:
    async def in_pieces(exchange: Exchange) -> None:
        for byte in OK + b"A : b\r\nContent-Length: 2\r\n" + CHUNKED:
            await exchange.send(bytes([byte]))

    async with receiver(in_pieces, authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
    assert (outcome.response_status, outcome.response_body) == (200, "ok")


LATE = {
    "the body of a 204": (b"HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\n", b"ok"),
    "the last chunk of a 204": (b"HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
    "the body of a 304": (b"HTTP/1.1 304 X\r\nContent-Length: 2\r\n\r\n", b"ok"),
    "a line end behind the body": (OK + LENGTH_2, b"\r\n"),
}


@pytest.mark.parametrize("name", LATE)
async def test_what_comes_late_never_reaches_the_next_delivery(
    sender: HttpSender, authority: Authority, name: str
) -> None:
    """5 ms late, so that the next request is on its way by then."""
    answer, late = LATE[name]

    async def in_two_parts(exchange: Exchange) -> None:
        await exchange.send(answer)
        await asyncio.sleep(0.005)
        await exchange.send(late)

    async with receiver(in_two_parts, authority.tls()) as receiving:
        outcomes = [await post(sender, receiving.url()) for _ in range(40)]
        assert {outcome.response_status for outcome in outcomes} == {int(answer[9:12])}
        assert len(receiving.requests) == 40
