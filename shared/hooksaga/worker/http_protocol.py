"""HTTP protocol of the local server: uvicorn's fast protocol, with the limits that it lacks.

Every state of a connection has a deadline: waiting for a request, a request's head, a body that is no longer read,
and a response that the client does not read. While a route runs, its own limits apply (`read_body`).
"""

import math
import time
from asyncio import BaseTransport
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.http_answers import (
    BAD_REQUEST,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    TOO_MANY_CONNECTIONS,
    whole_answer,
)

MAX_HEAD_BYTES = 64 * 1024

IDLE_SECONDS = 30.0
"""Limit without a request, before the first one and between two."""

HEAD_SECONDS = 10.0
"""Limit from the first byte of a request to the end of its head; also for the rest of a body after its response."""

SEND_SECONDS = 30.0
"""Limit for a client that stops reading its response."""

REFUSED_SECONDS = 1.0
"""Time for a refused client to read the reason: after an immediate close, unread input makes the system drop it."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Each subclass belongs to one server: `table` holds all of its connections.

    An incomplete head longer than MAX_HEAD_BYTES is refused. The limit may be exceeded by the bytes of one read: a
    body that arrived together with its head is not counted against it.
    """

    table: ConnectionTable

    _head_bytes = 0
    _in_head = True
    _refused = False
    _request_until = math.inf
    _answer_until = math.inf

    @property
    def deadline(self) -> float:
        return min(self._request_until, self._answer_until)

    def connection_made(self, transport: BaseTransport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)  # pyright: ignore[reportArgumentType]
        self._request_until = time.monotonic() + IDLE_SECONDS
        address = self.client[0] if self.client else ""
        refusal = self.table.add(self, address, self.transport.get_extra_info("socket").fileno())
        if refusal is not None and refusal.is_severe:
            self.transport.abort()
        elif refusal is not None:
            self._refused = True
            self._request_until = time.monotonic() + REFUSED_SECONDS
            self.transport.write(whole_answer(TOO_MANY_CONNECTIONS, refusal.detail))
            self.transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._in_head:
            if self._head_bytes > MAX_HEAD_BYTES:
                self._end(HEAD_TOO_LARGE, f"the head of a request may have {MAX_HEAD_BYTES} bytes")
                return
            if not self._head_bytes:
                self._request_until = time.monotonic() + HEAD_SECONDS
        self._head_bytes += len(data)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._request_until = math.inf
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        if self.cycle.response_complete:
            self._request_until = time.monotonic() + IDLE_SECONDS
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Set a deadline for the rest of a body that was already answered, or for the next request."""
        waits_for_request = self._in_head and not self._head_bytes
        self._request_until = time.monotonic() + (IDLE_SECONDS if waits_for_request else HEAD_SECONDS)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._answer_until = time.monotonic() + SEND_SECONDS
        super().pause_writing()

    def resume_writing(self) -> None:
        self._answer_until = math.inf
        super().resume_writing()

    def expire(self) -> None:
        """Handle the passed deadline, as `Expiring` says."""
        if self._is_answering and self._answer_until > time.monotonic():
            self._request_until = time.monotonic() + HEAD_SECONDS  # a pipelined request
        elif self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not read the data that closing would wait for
        elif self._in_head and self._head_bytes and not self._refused:
            self._end(HEAD_TOO_SLOW, f"the head of a request must arrive in {HEAD_SECONDS:g} s")
        else:
            self.transport.close()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        self._end(BAD_REQUEST, msg)

    def _end(self, code: str, detail: str) -> None:
        self._request_until = time.monotonic() + REFUSED_SECONDS
        self.transport.write(whole_answer(code, detail))
        self.transport.close()


def protocol_of(table: ConnectionTable) -> type[BoundedProtocol]:
    """Return the protocol class of one server."""
    return cast(type[BoundedProtocol], type("ServerProtocol", (BoundedProtocol,), {"table": table}))
