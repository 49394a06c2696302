"""HTTP for the local server: uvicorn's fast protocol, with the bounds that it lacks.

Every state of a connection has an end: waiting for a request, a request's head, a body that nobody reads any more,
and an answer that the client does not take. While a route is at work its own limits count (`read_body`).
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
"""Without a request, before the first one as between two."""

HEAD_SECONDS = 10.0
"""From the first byte of a request to the end of its head; also for the rest of a body after its answer."""

SEND_SECONDS = 30.0
"""For a client that takes no more of its answer."""

REFUSED_SECONDS = 1.0
"""For the client to read why it is refused: closed at once, what it has sent would make the system drop the answer."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Subclasses are of one server: `table` holds all connections of it.

    A head that has passed MAX_HEAD_BYTES and is not complete yet is refused. The bytes of one read may come on top: a
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
        """The client may send on the rest of a body that was answered already, or a next request, but not for ever."""
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
        """See `Expiring`."""
        if self._is_answering and self._answer_until > time.monotonic():
            self._request_until = time.monotonic() + HEAD_SECONDS  # a next request that came too early
        elif self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not take what closing would wait for
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
    """The protocol of one server."""
    return cast(type[BoundedProtocol], type("ServerProtocol", (BoundedProtocol,), {"table": table}))
