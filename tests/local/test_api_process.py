"""What the two processes of `hooksaga up` tell each other, and how many there are."""

import asyncio
import os
import socket
import sys

import pytest
from msgspec import json

from hooksaga.core.outcomes import ErrorClass
from hooksaga.local.api_process import processes_of
from hooksaga.local.channel import COUNTS, EVENTS, PAGE, Channel
from hooksaga.local.forwarded_counts import ForwardedCounts, take_counts
from hooksaga.runtime.metrics import Metric
from hooksaga.runtime.settings import Settings
from hooksaga.worker.open_metrics import OpenMetrics

Message = tuple[bytes, bytes]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="one process there")


class End:
    """One end, and what it got."""

    def __init__(self) -> None:
        self.got: asyncio.Queue[Message] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.channel = Channel(lambda word, body: self.got.put_nowait((word, body)), self.ended.set)

    async def on(self, one: socket.socket) -> "End":
        await asyncio.get_running_loop().create_unix_connection(lambda: self.channel, sock=one)
        return self


async def test_messages_arrive_whole_and_in_order_however_large() -> None:
    left, right = socket.socketpair()
    one, other = await End().on(left), await End().on(right)
    page = json.encode("a\nb " * 100_000)
    one.channel.send(PAGE, page)
    one.channel.send(EVENTS)  # waits for nothing: the page is still on its way
    one.channel.send(COUNTS, b"[]")
    async with asyncio.timeout(10):
        assert await other.got.get() == (PAGE, page)
        assert (await other.got.get())[0] in (EVENTS, COUNTS)
    one.channel.close()
    async with asyncio.timeout(10):
        await other.ended.wait()
    other.channel.send(EVENTS)  # nobody is there: no error


async def test_hints_do_not_pile_up_before_an_end_that_does_not_read() -> None:
    left, right = socket.socketpair()
    one = await End().on(left)
    with right:
        right.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        for _ in range(200_000):
            one.channel.send(EVENTS)
        assert one.channel.unsent < 1000
        one.channel.close()


async def test_counts_of_another_process_are_on_the_page() -> None:
    sent: list[bytes] = []
    counts, page = ForwardedCounts(sent.append), OpenMetrics()
    counts.count(Metric.EVENTS_ACCEPTED, 2)
    counts.count(Metric.EVENTS_ACCEPTED, 3)
    counts.count(Metric.DELIVERY_FAILED, 1, ErrorClass.TLS)
    counts.observe(Metric.DELIVERY_LATENCY, [5.0, 7.0])
    counts.flush()
    counts.flush()
    assert len(sent) == 1
    take_counts(sent[0], page)
    text = page.text(None).decode()
    assert "hooksaga_events_accepted_total 5.0" in text
    assert 'hooksaga_delivery_failed_total{error_class="tls"} 1.0' in text
    assert "hooksaga_delivery_latency_seconds_count 2.0" in text


async def test_counts_are_sent_without_being_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hooksaga.local.forwarded_counts.FORWARD_SECONDS", 0.01)
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    ForwardedCounts(sent.put_nowait).count(Metric.EVENTS_ACCEPTED, 1)
    async with asyncio.timeout(10):
        assert await sent.get()


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 2), (8, 2)])
def test_there_are_two_where_there_are_two_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, processes: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert processes_of(Settings()) == processes
    assert processes_of(Settings(processes=1)) == 1
    assert processes_of(Settings(processes=2)) == 2
