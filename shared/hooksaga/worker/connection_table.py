"""The open connections of the local HTTP server: how many there may be, and until when each may go on.

A connection costs a descriptor, and descriptors are needed for deliveries and for the database too. So connections
that would take the last ones are refused, by the number that the system gave to their socket: it is always the lowest
free one.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from hooksaga.worker.descriptors import descriptor_limit

MOST_PER_ADDRESS = 1000
SWEEP_SECONDS = 0.5
LEAST_SHARE = 5
"""One descriptor in this many is left to connections, however many the rest of the process needs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """detail: what is short, in words. is_severe: there is not even a descriptor left for saying so."""

    detail: str
    is_severe: bool = False


class Expiring(Protocol):
    """A connection as the table sees it. deadline: a moment of the monotonic clock."""

    @property
    def deadline(self) -> float: ...

    def expire(self) -> None:
        """The deadline has passed. Asked again at each sweep until the connection is closed."""
        ...


class ConnectionTable:
    """Of one server. `reserved` descriptors are left to everything else in the process.

    Belongs to the event loop that runs when the first connection comes.
    """

    def __init__(self, reserved: int) -> None:
        self._reserved = reserved
        self._open: dict[Expiring, str] = {}
        self._per_address: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Expiring, address: str, descriptor: int) -> Refusal | None:
        """Watch the deadline of a connection until `remove`. A Refusal where there is no room for it."""
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
        most = max(limit - self._reserved, limit // LEAST_SHARE)
        if descriptor >= most:
            return Refusal(
                f"file descriptors are short: this process may have {limit}; close connections, or raise the limit "
                "(ulimit -n)",
                is_severe=descriptor >= (most + limit) // 2,
            )
        if self._per_address[address] > MOST_PER_ADDRESS:
            return Refusal(
                f"connections are short: {address} has {MOST_PER_ADDRESS} open, the most of one address"
            )
        return None

    def _expire(self) -> None:
        now = time.monotonic()
        for connection in [one for one in self._open if one.deadline <= now]:
            connection.expire()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(SWEEP_SECONDS, self._expire) if self._open else None
