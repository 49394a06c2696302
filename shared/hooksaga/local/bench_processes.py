"""The other two processes of a benchmark: the receiver, and a client that posts at a fixed rate.

They do not share the event loop that is measured. Each communicates with its parent through a pipe and ends when the
parent's end closes, even if the parent was killed. Times are seconds of the monotonic clock, which all processes of a
machine share.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp

from hooksaga.local.receiver import Receiver, serve
from hooksaga.local.receiver_journal import Journal, Signature
from hooksaga.local.tls import ensure_certificates
from hooksaga.worker import event_loop

STOP_SECONDS = 10
CONNECTIONS = 256
REPORT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Arrivals:
    """First arrival of each delivery, by path and webhook-id; `requests` includes repeats."""

    first: dict[tuple[str, str], float]
    requests: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """One 202: when it was read, and the time since the POST was due."""

    event_id: str
    at: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Posting:
    """Requests of the client: the bodies in order, `rate` per second."""

    url: str
    key: str
    bodies: list[bytes]
    rate: float


@dataclass(frozen=True, slots=True)
class Posted:
    """Result of the client; `refused` lists the reasons."""

    started_at: float
    accepted: list[Accepted]
    refused: list[str]


@contextmanager
def child(target: Callable[..., None], *arguments: Any) -> Generator[Connection]:
    """Start a process that runs `target(pipe, *arguments)` and return the parent's end of the pipe."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join(STOP_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def receive(pipe: Connection, data_dir: Path) -> None:
    """Run the receiver: send its URL, then its Arrivals on each request."""
    _run(_receive(pipe, data_dir))


def post(pipe: Connection, posting: Posting) -> None:
    """Run the client: send the number of responses so far, and finally the Posted."""
    _run(_post(pipe, posting))


def _run(main: Coroutine[Any, Any, None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which ends this process
    event_loop.run(main)


class _ArrivalJournal(Journal):
    """Stores the time of each delivery only, so that the receiver is not the bottleneck."""

    def __init__(self) -> None:
        super().__init__(keep=False)
        self.first: dict[tuple[str, str], float] = {}
        self.count = 0

    def write(self, path: str, headers: Mapping[str, str], body: bytes, signature: Signature) -> None:
        webhook_id = headers.get("webhook-id", "")
        if webhook_id.startswith("evt_"):
            self.first.setdefault((path, webhook_id), time.monotonic())
            self.count += 1


async def _receive(pipe: Connection, data_dir: Path) -> None:
    receiver = Receiver(quiet=True)
    receiver.journal = journal = _ArrivalJournal()
    running = await serve(certificates=ensure_certificates(data_dir), receiver=receiver)
    pipe.send(running.url)
    while await asyncio.to_thread(_is_asked, pipe):
        pipe.send(Arrivals(journal.first, journal.count))
    await running.stop()


def _is_asked(pipe: Connection) -> bool:
    try:
        pipe.recv()
    except (EOFError, OSError):
        return False
    return True


async def _post(pipe: Connection, posting: Posting) -> None:
    """Start each POST when it is due, independent of earlier ones: a slow API does not slow down the client."""
    started = time.monotonic()
    posted = Posted(started, [], [])
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    headers = {"authorization": f"Bearer {posting.key}", "content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        reporting = asyncio.create_task(_report(pipe, posted))
        async with asyncio.TaskGroup() as group:
            for number, body in enumerate(posting.bodies):
                due = started + number / posting.rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                group.create_task(_post_one(session, f"{posting.url}/v1/events", body, due, posted))
        reporting.cancel()
    pipe.send(posted)


async def _post_one(
    session: aiohttp.ClientSession, url: str, body: bytes, due: float, posted: Posted
) -> None:
    try:
        async with session.post(url, data=body) as response:
            answer = await response.json()
            now = time.monotonic()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        posted.refused.append(f"{type(error).__name__}: {error}")
        return
    if response.status == 202:
        posted.accepted.append(Accepted(answer["id"], now, (now - due) * 1000))
    else:
        posted.refused.append(f"{response.status}: {answer.get('detail')}")


async def _report(pipe: Connection, posted: Posted) -> None:
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        pipe.send(len(posted.accepted) + len(posted.refused))
