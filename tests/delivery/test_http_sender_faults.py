"""Connections that break, deadlines, attempts that are cut, and requests that cannot be sent."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohappyeyeballs
import pytest

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from tests.delivery.attempts import post
from tests.delivery.hostile_receiver import (
    Authority,
    Behaviour,
    Exchange,
    dribbling,
    raw,
    receiver,
    silent_after_handshake,
    silent_listener,
    unused_port,
    well,
)

pytestmark = pytest.mark.timeout(10)


OK = b"HTTP/1.1 200 OK\r\n"

MakeSender = Callable[..., HttpSender]


def resetting(start: bytes) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        if start:
            await exchange.send(start)
            await asyncio.sleep(0.05)  # or the reset would overtake what was sent
        exchange.reset()

    return behave


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize(
    ("start", "outcome"),
    [
        (b"", "connection_reset"),
        (b"HTTP/1.1 200 OK\r\n", "connection_reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "connection_reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", None),
        (b"HTTP/1.1 500 X\r\nContent-Length: 5\r\n\r\nhel", "http_500"),
    ],
)
async def test_a_reset_at_each_stage(
    sender: HttpSender, authority: Authority, start: bytes, outcome: str | None
) -> None:
    async with receiver(resetting(start), authority.tls()) as receiving:
        assert (await post(sender, receiving.url())).error_code == outcome
        assert len(receiving.requests) == 1


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-"])
async def test_a_close_before_the_answer(sender: HttpSender, authority: Authority, start: bytes) -> None:
    async with receiver(raw(start), authority.tls()) as receiving:
        assert (await post(sender, receiving.url())).error_code == "connection_reset"


@pytest.mark.hostile("Receivers")
async def test_a_silent_peer_cannot_hold_a_cut_connection(sender: HttpSender, authority: Authority) -> None:
    """It completes the handshake and then never answers a TLS close_notify."""
    async with silent_after_handshake(authority.tls()) as (port, was_closed):
        outcome = await post(sender, f"https://127.0.0.1:{port}/", seconds=0.3)
        assert outcome.error_code == "timeout_total"
        assert await was_closed


@pytest.mark.hostile("Receivers")
async def test_an_early_413_is_recorded_as_413(sender: HttpSender, authority: Authority) -> None:
    async def too_large(exchange: Exchange) -> None:
        await exchange.answer(413, b"too large", "Connection: close")
        exchange.writer.close()

    async with receiver(too_large, authority.tls(), reads_body=False) as receiving:
        for _ in range(20):
            outcome = await post(sender, receiving.url(), b"a" * 200_000)
            assert (outcome.error_code, outcome.response_body) == ("http_413", "too large")


@pytest.mark.hostile("Receivers")
async def test_nothing_listens(sender: HttpSender) -> None:
    outcome = await post(sender, f"https://127.0.0.1:{unused_port()}/")
    assert (outcome.error_code, outcome.resolved_ip) == ("connection_refused", "127.0.0.1")


async def never(exchange: Exchange) -> None:
    await exchange.until_client_leaves()


async def stuck(_exchange: Exchange) -> None:
    await asyncio.Event().wait()


async def in_time(sending: Awaitable[SendOutcome], low: float, high: float) -> SendOutcome:
    began = time.monotonic()
    outcome = await sending
    assert low <= time.monotonic() - began < high
    return outcome


@pytest.mark.hostile("Receivers")
async def test_no_answer_within_the_deadline(sender: HttpSender, authority: Authority) -> None:
    async with receiver(never, authority.tls()) as receiving:
        outcome = await in_time(post(sender, receiving.url(), seconds=0.3), 0.29, 2.5)
        assert outcome.error_code == "timeout_total"
        await receiving.until(lambda seen: seen.open_connections == 0)


@pytest.mark.hostile("Receivers")
async def test_a_dribbled_head_does_not_stretch_the_deadline(
    sender: HttpSender, authority: Authority
) -> None:
    async with receiver(dribbling(OK, b"X: " + b"a" * 500), authority.tls()) as receiving:
        outcome = await in_time(post(sender, receiving.url(), seconds=0.3), 0.29, 2.5)
    assert outcome.error_code == "timeout_total"


@pytest.mark.hostile("Receivers")
async def test_a_receiver_that_does_not_read_the_body(sender: HttpSender, authority: Authority) -> None:
    async with receiver(stuck, authority.tls(), reads_body=False) as receiving:
        outcome = await in_time(post(sender, receiving.url(), b"a" * 1_000_000, seconds=0.3), 0.29, 2.5)
        assert outcome.error_code == "timeout_total"


@pytest.mark.hostile("Receivers")
async def test_tls_that_never_begins(make_sender: MakeSender) -> None:
    sender = make_sender(connect_timeout_seconds=0.3)
    async with silent_listener() as port:
        outcome = await in_time(post(sender, f"https://127.0.0.1:{port}/"), 0.29, 2.5)
        assert (outcome.error_code, outcome.resolved_ip) == ("timeout_connect", "127.0.0.1")
        outcome = await in_time(post(sender, f"https://127.0.0.1:{port}/", seconds=0.1), 0.09, 2.5)
        assert outcome.error_code == "timeout_total"


async def test_an_attempt_can_be_cancelled(sender: HttpSender, authority: Authority) -> None:
    async with receiver(never, authority.tls()) as receiving:
        sending = asyncio.ensure_future(post(sender, receiving.url()))
        await receiving.until(lambda seen: len(seen.requests) == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await receiving.until(lambda seen: seen.open_connections == 0)


async def test_attempts_cut_at_any_moment_leave_nothing_behind(
    make_sender: MakeSender, authority: Authority
) -> None:
    """300 attempts end somewhere between connect and body; then 50 well ones go through at full speed."""
    sender = make_sender()
    slow = True

    async def behave(exchange: Exchange) -> None:
        if slow:
            await dribbling(b"", OK + b"Content-Length: 30\r\n\r\n" + b"a" * 30, 0.001)(exchange)
        else:
            await exchange.answer()

    async with receiver(behave, authority.tls()) as receiving:
        cuts = (post(sender, receiving.url(), seconds=0.004 * (number % 100)) for number in range(300))
        codes = {outcome.error_code for outcome in await asyncio.gather(*cuts)}
        assert "timeout_total" in codes
        assert codes <= {None, "timeout_total"}
        slow = False
        async with asyncio.timeout(2):
            outcomes = await asyncio.gather(*(post(sender, receiving.url()) for _ in range(50)))
        assert {outcome.error_code for outcome in outcomes} == {None}
        await sender.close()
        await receiving.until(lambda seen: seen.open_connections == 0)


async def test_a_deadline_that_comes_when_an_address_has_won_still_counts(
    make_sender: MakeSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race between addresses swallows a cancel that comes while it ends the losers."""
    start_connection = aiohappyeyeballs.start_connection  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def swallowing(*args: Any, **options: Any) -> Any:
        connected: Any = await start_connection(*args, **options)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(2)
        return connected

    monkeypatch.setattr(aiohappyeyeballs, "start_connection", swallowing)
    async with silent_listener() as port:
        sender = make_sender(connect_timeout_seconds=0.2)
        outcome = await post(sender, f"https://127.0.0.1:{port}/")
    assert outcome.error_code == "timeout_connect"
    assert outcome.duration_ms < 1500


async def test_after_close_an_attempt_is_an_outcome(sender: HttpSender, authority: Authority) -> None:
    async with receiver(well, authority.tls()) as receiving:
        await post(sender, receiving.url())
        await sender.close()
        assert (await post(sender, receiving.url())).error_code == "internal_error"


BAD_HEADERS = [
    *(
        {"X Y": "1"},
        {"X:Y": "1"},
        {"": "1"},
        {"X\r\nY": "1"},
        {"caf\u00e9": "1"},
        {"X": "a\r\nY: b"},
        {"X": "a\nb"},
    ),
    *(
        {"X": "a\0b"},
        {"X": "\x7f"},
        {"X": "\ud800"},
        {"Host": "inside"},
        {"content-LENGTH": "1"},
        {"Cookie": "a=b"},
    ),
    *(
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Expect": "100-continue"},
        {"Upgrade": "h2c"},
    ),
]


@pytest.mark.parametrize("headers", BAD_HEADERS, ids=repr)
async def test_a_header_that_cannot_be_sent_is_an_outcome(
    sender: HttpSender, authority: Authority, headers: dict[str, str]
) -> None:
    async with receiver(well, authority.tls()) as receiving:
        outcome = await sender.send(OutgoingRequest(receiving.url(), headers, b"{}", 3))
        assert (outcome.error_code, outcome.response_status) == ("internal_error", None)
        assert receiving.requests == []
        assert (await post(sender, receiving.url())).error_code is None


BAD_URLS = [
    *(
        "",
        "https://",
        "http://127.0.0.1/",
        "ftp://127.0.0.1/",
        "https://a:b@127.0.0.1/",
        "https://127.0.0.1/#x",
    ),
    *(
        "https://127.1/",
        "https://2130706433/",
        "https://[::1",
        "https://127.0.0.1:99999/",
        "\0",
        "https://a b/",
    ),
]


@pytest.mark.hostile("Callback URLs, when they are called")
@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_bad_url_is_an_outcome(sender: HttpSender, url: str) -> None:
    outcome = await post(sender, url)
    assert outcome == SendOutcome(None, "invalid_url", None, False, None, None, outcome.duration_ms)
