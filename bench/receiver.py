"""The receiver of a measurement, a process of its own, and when each delivery came."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from bench.load import MeasurementFailed
from hooksaga.local.bench_processes import child
from hooksaga.local.receiver import Receiver, serve
from hooksaga.local.receiver_journal import Journal, Signature
from hooksaga.local.tls import ensure_certificates
from hooksaga.worker import event_loop

POLL_SECONDS = 0.02
STALLED_SECONDS = 60
TAKE, FIX = "take", "fix"

Deliveries = Mapping[tuple[str, str], float]
"""When each delivery came first, by path and webhook-id."""


class RunningReceiver:
    """The receiver of `hooksaga receiver`, which keeps of each delivery when it came first."""

    def __init__(self, pipe: Pipe, pid: int, ca_file: Path) -> None:
        self._pipe = pipe
        self.pid = pid
        self.ca_file = ca_file
        self.url: str = pipe.recv()

    def arrived(self, of: str = "/") -> int:
        """How many deliveries came to paths that begin so since the last `take`, repeats left out."""
        return self._ask(of)

    def take(self) -> Deliveries:
        """And forget them."""
        return self._ask(TAKE)

    def fix(self) -> None:
        """From now on `/down` answers 200."""
        self._ask(FIX)

    def wait_for(
        self, deliveries: int, *, of: str = "/", during: Callable[[], object] = lambda: None
    ) -> None:
        """Until so many have come; `during` is called again and again. Raises MeasurementFailed when none comes."""
        seen, since = -1, time.monotonic()
        while (arrived := self.arrived(of)) < deliveries:
            if arrived > seen:
                seen, since = arrived, time.monotonic()
            if time.monotonic() > since + STALLED_SECONDS:
                raise MeasurementFailed(f"only {arrived} of {deliveries} deliveries came")
            during()
            time.sleep(POLL_SECONDS)

    def _ask(self, what: str) -> Any:
        self._pipe.send(what)
        return self._pipe.recv()


@contextmanager
def running_receiver(folder: Path) -> Generator[RunningReceiver]:
    ca_file = ensure_certificates(folder).ca
    with child(_receive, folder) as pipe:
        yield RunningReceiver(pipe, pipe.recv(), ca_file)


class _Arrivals(Journal):
    def __init__(self) -> None:
        super().__init__(keep=False)
        self.first: dict[tuple[str, str], float] = {}

    def write(self, path: str, headers: Mapping[str, str], body: bytes, signature: Signature) -> None:
        self.first.setdefault((path, headers.get("webhook-id", "")), time.monotonic())

    def answer(self, question: str) -> Any:
        if question != TAKE:
            return (
                len(self.first)
                if question == "/"
                else sum(path.startswith(question) for path, _ in self.first)
            )
        taken, self.first = self.first, {}
        return taken


def _receive(pipe: Pipe, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    event_loop.run(_serve(pipe, folder))


async def _serve(pipe: Pipe, folder: Path) -> None:
    receiver = Receiver(quiet=True)
    receiver.journal = journal = _Arrivals()
    running = await serve(certificates=ensure_certificates(folder), receiver=receiver)
    pipe.send(os.getpid())
    pipe.send(running.url)
    with suppress(BrokenPipeError):  # who asked was interrupted
        while question := await asyncio.to_thread(_question, pipe):
            pipe.send(receiver.fix() if question == FIX else journal.answer(question))
    await running.stop()


def _question(pipe: Pipe) -> str | None:
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None
