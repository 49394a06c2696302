"""Messages between `hooksaga up` and its process of the API: lines over a pair of sockets.

A line is a word, and for some words a space and JSON. A message is a hint, or counts; none of them carries work.
"""

import asyncio
from collections.abc import Callable
from typing import cast

SERVE = b"serve"
"""To the API: the database is ready."""
STOP = b"stop"
"""To the API: let requests in flight end."""
PAGE = b"page"
"""To the API: the page of metrics. From it: a request for the page."""
EVENTS = b"events"
"""From the API: it has accepted events."""
SAGAS = b"sagas"
"""From the API: there are new sagas, or sagas that have become due."""
COUNTS = b"counts"
"""From the API: what it has counted since the last time."""
READY = b"ready"
"""From the API: it serves."""

HINTS = frozenset({EVENTS, SAGAS})


class Channel(asyncio.Protocol):
    """One end. on_message: called with each word and its JSON. on_end: called when the other end is closed."""

    def __init__(self, on_message: Callable[[bytes, bytes], object], on_end: Callable[[], object]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_end()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, body = line.partition(b" ")
            self._on_message(word, body)

    def send(self, word: bytes, body: bytes = b"") -> None:
        """Send a message. It is lost if the other end is gone, and a hint also if the other end does not read."""
        if self._transport is None or (word in HINTS and self.unsent):
            return
        self._transport.write(b"%s %s\n" % (word, body) if body else word + b"\n")

    @property
    def unsent(self) -> int:
        """Bytes that the other end has no room for at present."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
