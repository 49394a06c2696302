"""Open connections of the local HTTP server: their maximum number, and the deadline of each.

A connection uses a file descriptor, and deliveries and the database need descriptors too. So connections that would
take the last ones are refused, judged by the descriptor number of their socket: the system always assigns the lowest
free one.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from hooksaga.worker.descriptors import descriptor_limit

MAX_PER_ADDRESS = 1000
SWEEP_SECONDS = 0.5
MIN_SHARE = 5
"""One descriptor in this many is reserved for connections, however many the rest of the process needs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused connection. detail: the missing resource, in words. is_severe: no descriptor is left for a response."""

    detail: str
    is_severe: bool = False


class Expiring(Protocol):
    """A connection with a deadline, in seconds of the monotonic clock."""

    @property
    def deadline(self) -> float: ...

    def expire(self) -> None:
        """Handle the passed deadline. Called again at each sweep until the connection is closed."""
        ...


class ConnectionTable:
    """The connections of one server. `reserved` descriptors are left to the rest of the process.

    Belongs to the event loop that runs when the first connection arrives.
    """

    def __init__(self, reserved: int) -> None:
        self._reserved = reserved
        self._open: dict[Expiring, str] = {}
        self._per_address: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Expiring, address: str, descriptor: int) -> Refusal | None:
        """Watch the deadline of a connection until `remove`. Returns a Refusal when there is no room for it."""
        self._open[connection] = address
        self._per_address[address] += 1
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._expire)
        return self._refusal(address, descriptor)

    def remove(self, connection: Expiring) -> None:
        address = self._open.pop(connection)
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]

    def _refusal(self, address: str, descriptor: int) -> Refusal | None:
        limit = descriptor_limit()
        most = max(limit - self._reserved, limit // MIN_SHARE)
        if descriptor >= most:
            return Refusal(
                f"file descriptors are short: this process may have {limit}; close connections, or raise the limit "
                "(ulimit -n)",
                is_severe=descriptor >= (most + limit) // 2,
            )
        if self._per_address[address] > MAX_PER_ADDRESS:
            return Refusal(
                f"connections are short: {address} has {MAX_PER_ADDRESS} open, the most of one address"
            )
        return None

    def _expire(self) -> None:
        now = time.monotonic()
        for connection in [one for one in self._open if one.deadline <= now]:
            connection.expire()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(SWEEP_SECONDS, self._expire) if self._open else None
