"""Journal of the receiver: counts, and the latest requests within a memory limit."""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

MAX_ENTRIES = 20_000
MAX_BYTES = 64 * 1024 * 1024


class Signature(StrEnum):
    GOOD = "good"
    BAD = "bad"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Received:
    """`arrived_at`: Unix seconds. `body` is text, with undecodable bytes replaced; the hash is of the original
    bytes."""

    path: str
    webhook_id: str
    event_type: str
    attempt: str
    signature: Signature
    arrived_at: float
    sha256: str
    body: str
    traceparent: str = ""


class Journal:
    """`keep` False: only counts."""

    def __init__(self, *, keep: bool = True, most: int = MAX_ENTRIES, most_bytes: int = MAX_BYTES) -> None:
        self.received: deque[Received] = deque()
        self.requests: Counter[str] = Counter()
        self.signatures: Counter[Signature] = Counter()
        self._keep = keep
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0

    def write(self, path: str, headers: Mapping[str, str], body: bytes, signature: Signature) -> None:
        self.requests[path] += 1
        self.signatures[signature] += 1
        if self._keep:
            self._append(_received(path, headers, body, signature))

    def of(self, path: str | None = None) -> list[Received]:
        """Return the stored requests, oldest first, of one path or of all."""
        return [one for one in self.received if path is None or one.path == path]

    def as_json(self, path: str | None = None) -> dict[str, Any]:
        return {
            "requests": dict(self.requests),
            "signatures": {one.value: self.signatures[one] for one in Signature},
            "received": [asdict(one) for one in self.of(path)],
        }

    def _append(self, one: Received) -> None:
        self.received.append(one)
        self._bytes += len(one.body)
        while len(self.received) > self._most or self._bytes > self._most_bytes:
            self._bytes -= len(self.received.popleft().body)


def _received(path: str, headers: Mapping[str, str], body: bytes, signature: Signature) -> Received:
    return Received(
        path=path,
        webhook_id=headers.get("webhook-id", ""),
        event_type=headers.get("hooksaga-event-type", ""),
        attempt=headers.get("hooksaga-attempt", ""),
        signature=signature,
        arrived_at=time.time(),
        sha256=hashlib.sha256(body).hexdigest(),
        body=body.decode(errors="replace"),
        traceparent=headers.get("traceparent", ""),
    )
