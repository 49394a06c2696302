"""The load: events at a fixed rate, each with an idempotency key, and a journal of every 202."""

import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hooksaga.client import HooksagaClient, HooksagaClientError, RetryPolicy

EVENT_TYPE = "proof.event"
PATIENCE = RetryPolicy(attempts=10_000, total_seconds=900, attempt_seconds=30, longest_wait_seconds=5)
"""A producer that repeats a request through a failover of the database."""

THREADS_PER_EVENT = 3
MOST_THREADS = 64
JOIN_SECONDS = 960


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event that was answered with 202. Unix seconds by this machine's clock; sent_at: of the first attempt."""

    id: str
    sent_at: float
    accepted_at: float

    @property
    def waited(self) -> float:
        return self.accepted_at - self.sent_at


class Load:
    """Posts from threads for as long as the block runs. Leaving it waits for the requests that are under way."""

    def __init__(self, api_url: str, key: str, rate: float, journal: Path) -> None:
        self._rate = rate
        self._journal = journal
        self._client = HooksagaClient(api_url, key, retry=PATIENCE)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._next = 0
        self.given_up: list[str] = []
        """Requests without a 202 at the end, with their errors. Their events may have been stored."""

    def __enter__(self) -> Self:
        self._started = time.time()
        count = min(MOST_THREADS, max(4, int(self._rate * THREADS_PER_EVENT)))
        self._threads = [threading.Thread(target=self._post, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        deadline = time.monotonic() + (0 if error else JOIN_SECONDS)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._client.close()

    def _post(self) -> None:
        while (number := self._due()) is not None:
            sent_at = time.time()
            key = f"proof-{self._started:.6f}-{number}"
            try:
                sent = self._client.send(EVENT_TYPE, {"number": number}, idempotency_key=key)
            except HooksagaClientError as error:
                with self._lock:
                    self.given_up.append(f"{key}: {error}")
                continue
            self._write(Accepted(sent.id, sent_at, time.time()))

    def _due(self) -> int | None:
        """Wait for the next event's turn and return its number; None when the load ends."""
        with self._lock:
            number = self._next
            self._next += 1
        pause = self._started + number / self._rate - time.time()
        return None if self._stop.wait(max(0.0, pause)) else number

    def _write(self, one: Accepted) -> None:
        line = json.dumps(asdict(one)) + "\n"
        with self._lock, self._journal.open("a", encoding="utf-8") as file:
            file.write(line)


def read_journal(path: Path) -> list[Accepted]:
    """Return all events of the journal; none without the file. A line that an interruption cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [Accepted(**json.loads(line)) for line in lines[:-1]]
