"""Answers that no receiver should give: each ends as an outcome, at once, with memory bounded."""

import asyncio

import pytest

from hooksaga.adapters.http_sender import HttpSender
from tests.delivery.attempts import post
from tests.delivery.hostile_receiver import (
    Authority,
    Behaviour,
    Exchange,
    dribbling,
    endlessly,
    raw,
    receiver,
)

pytestmark = [pytest.mark.timeout(10), pytest.mark.hostile("Receivers")]


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
# What the kernel holds for a connection on loopback, with room to spare: nobody has read these bytes.
KERNEL_BUFFERS = 16_000_000


BROKEN_AFTER_THE_HEAD: dict[str, tuple[Behaviour, str, bool]] = {
    "shorter than promised": (raw(OK + b"Content-Length: 50\r\n\r\nhello"), "hello", True),
    "longer than promised": (
        raw(OK + b"Content-Length: 5\r\n\r\nhello world", then_close=False),
        "hello",
        False,
    ),
    "no last chunk": (raw(CHUNKED + b"5\r\nhello\r\n"), "hello", True),
    "bad chunk size": (raw(CHUNKED + b"5\r\nhello\r\nzz\r\n", then_close=False), "hello", True),
    "bad first chunk": (raw(CHUNKED + b"zz\r\n", then_close=False), "", True),
    "nothing but the head": (raw(OK + b"Content-Length: 5\r\n\r\n"), "", True),
    "read until the end": (raw(OK + b"\r\nhello"), "hello", False),
    "HTTP/1.0": (raw(b"HTTP/1.0 200 OK\r\n\r\nhello"), "hello", False),
    "204 with a body": (
        raw(b"HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\nhello", then_close=False),
        "",
        False,
    ),
    "no reason phrase": (raw(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"), "ok", False),
    "blank lines first": (raw(b"\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok"), "ok", False),
    "bytes outside ASCII": (raw(OK + b"X: caf\xe9 \xff\r\nContent-Length: 2\r\n\r\nok"), "ok", False),
    "interim answers": (
        raw(b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok"),
        "ok",
        False,
    ),
}


@pytest.mark.parametrize("name", BROKEN_AFTER_THE_HEAD)
async def test_a_complete_head_decides(sender: HttpSender, authority: Authority, name: str) -> None:
    behave, body, truncated = BROKEN_AFTER_THE_HEAD[name]
    async with receiver(behave, authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
    assert (outcome.response_status, outcome.error_code) == (200 if name[:3] != "204" else 204, None)
    assert (outcome.response_body, outcome.response_truncated) == (body, truncated)
    assert outcome.duration_ms < 2500


async def test_a_head_in_many_pieces_is_the_same_head(sender: HttpSender, authority: Authority) -> None:
    async with receiver(
        dribbling(b"", OK + b"Content-Length: 2\r\n\r\nok", 0.001), authority.tls()
    ) as receiving:
        outcome = await post(sender, receiving.url())
    assert (outcome.error_code, outcome.response_body) == (None, "ok")


NOT_HTTP: dict[str, Behaviour] = {
    "a banner": raw(b"SSH-2.0-OpenSSH_9.9\r\n", then_close=False),
    "HTTP/2 frames": raw(b"\0\0\x12\x04\0\0\0\0\0" + b"\0\3\0\0\0\x64" * 3, then_close=False),
    "a bare body": raw(b"ok", then_close=False),
    "four digits of status": raw(b"HTTP/1.1 2000 X\r\nContent-Length: 0\r\n\r\n", then_close=False),
    "a status below 100": raw(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n"),
    "NUL in a header": raw(OK + b"X: a\0b\r\nContent-Length: 0\r\n\r\n", then_close=False),
    "two lengths": raw(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", then_close=False),
    "a negative length": raw(OK + b"Content-Length: -5\r\n\r\n", then_close=False),
    "a length over 64 bits": raw(OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n", then_close=False),
    "60,000 headers": raw(OK + b"X-Y: a\r\n" * 60_000 + b"\r\n", then_close=False),
    "a header of 1 MB": raw(OK + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", then_close=False),
    "a reason phrase of 300 KB": raw(b"HTTP/1.1 200 " + b"a" * 300_000 + b"\r\n\r\n", then_close=False),
    "endless headers": endlessly(OK, b"X-Y: abc\r\n" * 100),
    "one endless header": endlessly(OK + b"X: ", b"a" * 1000),
    "an endless reason phrase": endlessly(b"HTTP/1.1 200 ", b"a" * 1000),
    "endless interim answers": endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "endless blank lines": endlessly(b"", b"\r\n" * 500),
}


@pytest.mark.parametrize("name", NOT_HTTP)
async def test_what_is_no_answer_ends_at_once(sender: HttpSender, authority: Authority, name: str) -> None:
    async with receiver(NOT_HTTP[name], authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
        assert (outcome.error_code, outcome.response_status) == ("protocol_error", None)
        assert (outcome.response_body, outcome.resolved_ip) == (None, "127.0.0.1")
        assert outcome.duration_ms < 2500
        await receiving.until(lambda seen: seen.open_connections == 0)
        assert receiving.exchanges[0].sent < KERNEL_BUFFERS


@pytest.mark.parametrize("head", [b"\n", b"\r\n"])
async def test_bare_line_feeds_are_an_outcome(sender: HttpSender, authority: Authority, head: bytes) -> None:
    """The parser takes them, except in Python's development mode."""
    answer = head.join([b"HTTP/1.1 200 OK", b"Content-Length: 2", b"", b"ok"])
    async with receiver(raw(answer, then_close=False), authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
    assert (outcome.error_code, outcome.response_body) in [(None, "ok"), ("protocol_error", None)]


ENDLESS_BODIES: dict[str, Behaviour] = {
    "until the end": endlessly(OK + b"\r\n", b"a" * 10_000),
    "2 GB promised": endlessly(OK + b"Content-Length: 2147483648\r\n\r\n", b"a" * 10_000),
    "chunks": endlessly(CHUNKED, b"2710\r\n" + b"a" * 10_000 + b"\r\n"),
    "chunks of one byte": endlessly(CHUNKED, b"1\r\na\r\n" * 1000),
    "one chunk extension": endlessly(CHUNKED + b"5;", b"a" * 10_000),
    "trailers": endlessly(CHUNKED + b"0\r\n", b"X: aaaa\r\n" * 1000),
    "one trailer": endlessly(CHUNKED + b"0\r\nX: ", b"a" * 10_000),
}


@pytest.mark.parametrize("name", ENDLESS_BODIES)
async def test_an_endless_body_is_left_not_drained(
    sender: HttpSender, authority: Authority, name: str
) -> None:
    async with receiver(ENDLESS_BODIES[name], authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
        assert (outcome.response_status, outcome.error_code, outcome.response_truncated) == (200, None, True)
        assert outcome.duration_ms < 2500
        await receiving.until(lambda seen: seen.open_connections == 0)
        assert receiving.exchanges[0].sent < KERNEL_BUFFERS


@pytest.mark.parametrize("status", [200, 500])
async def test_a_dribbled_body_ends_at_the_deadline_with_its_status(
    sender: HttpSender, authority: Authority, status: int
) -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Length: 500\r\n\r\n".encode()
    async with receiver(dribbling(head, b"a" * 500), authority.tls()) as receiving:
        outcome = await post(sender, receiving.url(), seconds=0.3)
        await receiving.until(lambda seen: seen.open_connections == 0)
    assert outcome.response_status == status
    assert outcome.error_code == (None if status == 200 else "http_500")
    assert outcome.response_truncated
    assert set(outcome.response_body or "") == {"a"}
    assert 290 <= outcome.duration_ms < 2500


async def test_a_second_answer_is_never_taken_for_the_next_one(
    sender: HttpSender, authority: Authority
) -> None:
    """Three ways to send it: with the first, after the first's head, and while the connection is idle."""
    first, second = OK + b"Content-Length: 5\r\n\r\n", OK + b"Content-Length: 5\r\n\r\nstale"

    async def together(exchange: Exchange) -> None:
        await exchange.send(first + b"fresh" + second)

    async def apart(exchange: Exchange) -> None:
        await exchange.send(first)
        await asyncio.sleep(0.05)
        await exchange.send(b"fresh" + second)

    async def idle(exchange: Exchange) -> None:
        await exchange.send(first + b"fresh")
        await asyncio.sleep(0.05)
        await exchange.send(second)

    for behave in (together, apart, idle):
        async with receiver(behave, authority.tls()) as receiving:
            assert (await post(sender, receiving.url())).response_body == "fresh"
            if behave is idle:
                await receiving.until(lambda seen: seen.open_connections == 0)
            assert (await post(sender, receiving.url())).response_body == "fresh"
            assert receiving.connections == 2


async def test_101_is_a_failure_and_ends_the_connection(sender: HttpSender, authority: Authority) -> None:
    answer = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nframes"
    async with receiver(raw(answer, then_close=False), authority.tls()) as receiving:
        assert (await post(sender, receiving.url())).error_code == "http_101"
        await receiving.until(lambda seen: seen.open_connections == 0)
