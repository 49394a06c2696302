"""Connections that are used again: not where they have ended, and what is sent again where they end at that moment."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from hooksaga.adapters.connection_pool import ConnectionPool
from hooksaga.adapters.http_connections import HttpConnection
from hooksaga.adapters.http_sender import HttpSender, SendOutcome
from tests.delivery.attempts import post
from tests.delivery.hostile_receiver import Authority, Exchange, receiver, well

pytestmark = pytest.mark.timeout(20)

ENDS: dict[str, Callable[[Exchange], None]] = {
    "with a farewell": lambda exchange: exchange.writer.close(),
    "without a farewell": lambda exchange: exchange.end_now(),
    "by a reset": lambda exchange: exchange.reset(),
}


class Ending:
    """Answers the first request of each connection. The second one it reads, answers so far, and ends."""

    def __init__(self, end: Callable[[Exchange], None], answer: bytes = b"") -> None:
        self._end = end
        self._answer = answer
        self._answered: set[int] = set()

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.connection not in self._answered:
            self._answered.add(exchange.connection)
            await exchange.answer()
            return
        if self._answer:
            await exchange.send(self._answer)
        self._end(exchange)


def ends(outcome: SendOutcome) -> tuple[str | None, bool]:
    return outcome.error_code, outcome.reconnected


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("how", ENDS)
async def test_a_kept_connection_that_ends_unanswered_costs_a_second_post_and_no_attempt(
    sender: HttpSender, authority: Authority, how: str
) -> None:
    async with receiver(Ending(ENDS[how]), authority.tls()) as receiving:
        outcomes = [await post(sender, receiving.url(), b"%d" % number) for number in range(4)]
        assert [ends(one) for one in outcomes] == [(None, False), (None, True), (None, True), (None, True)]
        assert [one.body for one in receiving.requests] == [b"0", b"1", b"1", b"2", b"2", b"3", b"3"]
        assert (receiving.requests[1].target, receiving.requests[1].headers) == (
            receiving.requests[2].target,
            receiving.requests[2].headers,
        )


@pytest.mark.hostile("Receivers")
async def test_receivers_that_close_behind_each_answer_cost_no_attempt(
    sender: HttpSender, authority: Authority
) -> None:
    """At once, or a moment later: so that the end meets a request at every point of its way."""

    async def answer_and_close(exchange: Exchange) -> None:
        await exchange.answer()
        for _ in range(len(receiving.requests) % 8):
            await asyncio.sleep(0)
        exchange.writer.close()

    async with receiver(answer_and_close, authority.tls()) as receiving:
        outcomes = [await post(sender, receiving.url()) for _ in range(60)]
        assert {one.error_code for one in outcomes} == {None}
        assert len(receiving.requests) <= 60 + sum(one.reconnected for one in outcomes)


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("answer", [b"H", b"HTTP/1.1 200 OK\r\nContent-", b"junk"])
async def test_one_byte_of_an_answer_is_enough_for_no_second_post(
    sender: HttpSender, authority: Authority, answer: bytes
) -> None:
    async with receiver(Ending(ENDS["with a farewell"], answer), authority.tls()) as receiving:
        await post(sender, receiving.url())
        outcome = await post(sender, receiving.url())
        assert outcome.error_code == ("protocol_error" if answer == b"junk" else "connection_reset")
        assert (outcome.reconnected, len(receiving.requests)) == (False, 2)


async def test_a_blank_line_is_no_byte_of_an_answer(sender: HttpSender, authority: Authority) -> None:
    async with receiver(Ending(ENDS["with a farewell"], b"\r\n"), authority.tls()) as receiving:
        outcomes = [await post(sender, receiving.url()) for _ in range(2)]
        assert [ends(one) for one in outcomes] == [(None, False), (None, True)]


@pytest.mark.hostile("Receivers")
async def test_a_new_connection_that_ends_unanswered_is_not_replaced(
    sender: HttpSender, authority: Authority
) -> None:
    async def unwilling(exchange: Exchange) -> None:
        if len(receiving.requests) == 1:
            await exchange.answer()
        else:
            exchange.writer.close()

    async with receiver(unwilling, authority.tls()) as receiving:
        outcomes = [await post(sender, receiving.url()) for _ in range(3)]
        assert [ends(one) for one in outcomes] == [
            (None, False),
            ("connection_reset", True),
            ("connection_reset", False),
        ]
        assert len(receiving.requests) == 4


async def test_the_second_post_goes_over_a_new_connection_and_no_kept_one(
    sender: HttpSender, authority: Authority
) -> None:
    """A receiver that restarts has closed all of them."""
    both_here = asyncio.Event()
    ending = Ending(ENDS["with a farewell"])

    async def together(exchange: Exchange) -> None:
        if len(receiving.requests) == 2:
            both_here.set()
        await both_here.wait()
        await ending(exchange)

    async with receiver(together, authority.tls()) as receiving:
        await asyncio.gather(*(post(sender, receiving.url()) for _ in range(2)))
        assert receiving.connections == 2
        assert ends(await post(sender, receiving.url())) == (None, True)
        assert (receiving.connections, len(receiving.requests)) == (3, 4)


async def test_the_second_post_keeps_to_the_deadline_of_the_first(
    sender: HttpSender, authority: Authority
) -> None:
    async def slow(exchange: Exchange) -> None:
        if len(receiving.requests) == 1:
            await exchange.answer()
        elif len(receiving.requests) == 2:
            await asyncio.sleep(0.3)
            exchange.writer.close()
        else:
            await exchange.until_client_leaves()

    async with receiver(slow, authority.tls()) as receiving:
        await post(sender, receiving.url())
        outcome = await post(sender, receiving.url(), seconds=0.6)
        assert ends(outcome) == ("timeout_total", True)
        assert 590 <= outcome.duration_ms < 850


async def test_nothing_is_sent_again_after_the_deadline(sender: HttpSender, authority: Authority) -> None:
    """The process sleeps, and finds the end of the connection when its lease may be another worker's."""

    async def end_and_sleep(exchange: Exchange) -> None:
        exchange.end_now()
        time.sleep(0.4)

    async with receiver(well, authority.tls()) as receiving:
        await post(sender, receiving.url())
        receiving.behave = end_and_sleep
        outcome = await post(sender, receiving.url(), seconds=0.3)
        assert ends(outcome) == ("connection_reset", False)
        receiving.behave = well
        assert ends(await post(sender, receiving.url())) == (None, False)
        assert len(receiving.requests) == 3


async def test_nothing_is_sent_again_by_a_sender_that_closes(
    sender: HttpSender, authority: Authority
) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.until_client_leaves()

    async with receiver(well, authority.tls()) as receiving:
        await post(sender, receiving.url())
        receiving.behave = never
        sending = asyncio.ensure_future(post(sender, receiving.url()))
        await receiving.until(lambda seen: len(seen.requests) == 2)
        await sender.close()
        assert ends(await sending) == ("connection_reset", False)
        assert receiving.connections == 1


@pytest.mark.hostile("Receivers")
async def test_a_kept_connection_closed_while_idle_is_not_reused(
    sender: HttpSender, authority: Authority
) -> None:
    async def answer_and_close(exchange: Exchange) -> None:
        await exchange.answer()
        exchange.writer.close()

    async with receiver(answer_and_close, authority.tls()) as receiving:
        for _ in range(3):
            assert ends(await post(sender, receiving.url())) == (None, False)
            await receiving.until(lambda seen: seen.open_connections == 0)
        assert receiving.connections == 3


@pytest.mark.hostile("Receivers")
async def test_a_connection_whose_end_waits_in_the_socket_is_not_reused(
    sender: HttpSender, authority: Authority
) -> None:
    """The receiver has closed, and the sender's event loop has not come to read that."""
    async with receiver(well, authority.tls()) as receiving:
        for _ in range(5):
            assert ends(await post(sender, receiving.url())) == (None, False)
            receiving.exchanges[-1].end_now()
            assert ends(await post(sender, receiving.url())) == (None, False)


async def test_a_cancel_that_comes_with_the_answer_loses_no_connection(
    sender: HttpSender, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver(well, authority.tls()) as receiving:
        sending = asyncio.ensure_future(post(sender, receiving.url()))
        end = HttpConnection._end  # pyright: ignore[reportPrivateUsage]

        def end_and_cancel(connection: HttpConnection, fault: Exception | None) -> None:
            end(connection, fault)
            sending.cancel()

        with monkeypatch.context() as patched:
            patched.setattr(HttpConnection, "_end", end_and_cancel)
            with pytest.raises(asyncio.CancelledError):
                await sending
        assert (await post(sender, receiving.url())).error_code is None
        assert receiving.connections == 1


async def test_nothing_follows_a_request_that_is_not_out_yet(
    sender: HttpSender, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver answers early, keeps the connection open, and reads nothing more."""
    open_socket: Any = ConnectionPool._open_socket  # pyright: ignore[reportPrivateUsage]

    def open_small(*args: Any) -> socket.socket:
        made: socket.socket = open_socket(*args)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 40_000)
        return made

    async def early(exchange: Exchange) -> None:
        await exchange.answer(413, b"no")
        await asyncio.Event().wait()

    monkeypatch.setattr(ConnectionPool, "_open_socket", open_small)
    async with receiver(early, authority.tls(), reads_body=False) as receiving:
        assert (await post(sender, receiving.url(), b"a" * 262_144)).error_code == "http_413"
        assert (await post(sender, receiving.url(), seconds=1)).error_code == "http_413"
        assert receiving.connections == 2
