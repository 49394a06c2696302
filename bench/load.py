"""A client that posts events and costs little: raw HTTP over kept connections, in a process of its own.

A client of a library takes as much time for a request as the API does, and on two cores that is what would be
measured. This one writes requests that were made beforehand and reads of an answer its status and its body.
Moments are seconds of the monotonic clock, which is one for all processes of a machine.
"""

import asyncio
import re
import signal
import time
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any, cast
from urllib.parse import urlsplit

from hooksaga.local.bench_figures import make_body, make_payload
from hooksaga.local.bench_processes import child
from hooksaga.worker import event_loop

EVENT_ID = re.compile(rb'"id": ?"(evt_[0-9a-f]{32})"')
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)
LATEST_ANSWER_SECONDS = 60


class MeasurementFailed(Exception):
    """There is nothing to report. The message says why."""


@dataclass(frozen=True, slots=True)
class Load:
    """count events of the types in turn, `batch` to a request. rate: events a second; None: as fast as possible."""

    url: str
    key: str
    event_types: tuple[str, ...]
    count: int
    batch: int = 1
    rate: float | None = None
    connections: int = 32
    payload_bytes: int = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """One good answer: when it was read, and how long it took since the request was due or, without a rate, sent."""

    at: float
    milliseconds: float
    event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of a load. cpu_seconds: used by the client."""

    started_at: float
    ended_at: float
    cpu_seconds: float
    answers: list[Answer]

    @property
    def seconds(self) -> float:
        return self.ended_at - self.started_at

    @property
    def accepted_at(self) -> dict[str, float]:
        return {event_id: answer.at for answer in self.answers for event_id in answer.event_ids}

    def milliseconds(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        """Latencies of the responses that were read in a time span."""
        return [answer.milliseconds for answer in self.answers if since <= answer.at <= until]


class RunningLoad:
    """A load whose client has been started."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def began(self) -> float:
        """The moment of the first request, once it is there."""
        return _answer(self._pipe)

    def result(self) -> Loaded:
        """Waits for the end; `began` was asked before. Raises MeasurementFailed when a request was refused."""
        return _answer(self._pipe)


@contextmanager
def running_load(load: Load) -> Generator[RunningLoad]:
    with child(_post, load) as pipe:
        yield RunningLoad(pipe)


def run_load(load: Load) -> Loaded:
    """Raises MeasurementFailed when a request was refused."""
    with running_load(load) as running:
        running.began()
        return running.result()


def _answer(pipe: Pipe) -> Any:
    try:
        answer = pipe.recv()
    except EOFError:
        raise MeasurementFailed("the client ended too early") from None
    if isinstance(answer, str):
        raise MeasurementFailed(answer)
    return answer


def _post(pipe: Pipe, load: Load) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    with suppress(BrokenPipeError):  # who asked was interrupted
        event_loop.run(_send_all(pipe, load))


async def _send_all(pipe: Pipe, load: Load) -> None:
    requests = _requests(load)
    client = _Client(load)
    started, cpu = time.monotonic(), time.process_time()
    pipe.send(started)
    failed = await _failure_of(client.send(requests))
    ended, cpu = time.monotonic(), time.process_time() - cpu
    client.close()
    answers = [
        Answer(at, took * 1000, tuple(found.decode() for found in EVENT_ID.findall(body)))
        for at, took, body in client.answers
    ]
    accepted = sum(len(answer.event_ids) for answer in answers)
    if failed is None and accepted < load.count:
        failed = (
            f"{load.count - accepted} of {load.count} events were refused: {client.answers[-1][2][:500]!r}"
        )
    pipe.send(failed or Loaded(started, ended, cpu, answers))


async def _failure_of(sending: Coroutine[Any, Any, None]) -> str | None:
    failures: list[str] = []
    try:
        await sending
    except* (OSError, RefusedRequest, TimeoutError) as errors:
        failures = [f"{type(error).__name__} {error}" for error in errors.exceptions]
    return f"{len(failures)} requests failed; the first: {failures[0]}" if failures else None


class RefusedRequest(Exception):
    """The API answered with something else than 2xx."""


def _requests(load: Load) -> list[bytes]:
    bodies = [
        make_body(load.event_types[number % len(load.event_types)], make_payload(number, load.payload_bytes))
        for number in range(load.count)
    ]
    if load.batch == 1:
        return [_request(load, "/v1/events", body) for body in bodies]
    return [
        _request(load, "/v1/events/batch", b'{"items":[' + b",".join(bodies[at : at + load.batch]) + b"]}")
        for at in range(0, load.count, load.batch)
    ]


def _request(load: Load, path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {urlsplit(load.url).netloc}\r\nauthorization: Bearer {load.key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none, but for their methods

    def ask(self, request: bytes) -> "asyncio.Future[bytes]":
        """The body of a 2xx answer. Raises RefusedRequest, ConnectionError."""
        assert self.transport is not None
        self._received.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        length = CONTENT_LENGTH.search(self._received, 0, end + 2) if end >= 0 else None
        if length is None or len(self._received) < end + 4 + int(length[1]):
            return
        answer, self._answer = self._answer, None
        if answer is None or answer.done():
            return
        if self._received[9:10] == b"2":
            answer.set_result(bytes(self._received[end + 4 :]))
        else:
            answer.set_exception(RefusedRequest(self._received[9:].decode(errors="replace")[:500]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the connection was closed"))


class _Client:
    def __init__(self, load: Load) -> None:
        place = urlsplit(load.url)
        self._host, self._port = place.hostname or "", place.port or 80
        self._load = load
        self._most = load.connections
        self._opened = 0
        self._idle: list[_Connection] = []
        self._all: list[_Connection] = []
        self._returned = asyncio.Event()
        self.answers: list[tuple[float, float, bytes]] = []

    async def send(self, requests: list[bytes]) -> None:
        """Raises, in a group, RefusedRequest, OSError and TimeoutError."""
        if self._load.rate is None:
            await self._send_at_once(requests)
        else:
            await self._send_at_rate(requests, self._load.batch / self._load.rate)

    async def _send_at_once(self, requests: list[bytes]) -> None:
        waiting = iter(requests)

        async def worker() -> None:
            connection = await self._open()
            for request in waiting:
                await self._ask(connection, request, time.monotonic())

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._most, len(requests))):
                group.create_task(worker())

    async def _send_at_rate(self, requests: list[bytes], pause: float) -> None:
        """Each starts when it is due, however long those before it take: a slow API does not slow its client."""
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(requests):
                due = started + number * pause
                if (early := due - time.monotonic()) > 0:
                    await asyncio.sleep(early)
                group.create_task(self._ask_by_any(request, due))

    async def _ask_by_any(self, request: bytes, since: float) -> None:
        connection = await self._take()
        await self._ask(connection, request, since)
        self._idle.append(connection)
        self._returned.set()

    async def _take(self) -> _Connection:
        """Return an idle connection, a new one, or at the limit the next that becomes idle."""
        while True:
            while self._idle:
                connection = self._idle.pop()
                if connection.transport is not None and not connection.transport.is_closing():
                    return connection
                self._opened -= 1
            if self._opened < self._most:
                return await self._open()
            self._returned.clear()
            await self._returned.wait()

    async def _open(self) -> _Connection:
        self._opened += 1
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port)
        self._all.append(connection)
        return connection

    async def _ask(self, connection: _Connection, request: bytes, since: float) -> None:
        async with asyncio.timeout(LATEST_ANSWER_SECONDS):
            body = await connection.ask(request)
        now = time.monotonic()
        self.answers.append((now, now - since, body))

    def close(self) -> None:
        for connection in self._all:
            if connection.transport is not None:
                connection.transport.close()
