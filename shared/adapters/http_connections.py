"""What the HTTP client does not do by itself on its connections.

It bounds the head of an answer, keeps a head that garbage follows, never takes stray data for the answer to
the next request, names the peer, and drops a bad connection without waiting for it.
"""

import asyncio
import re
import select
import ssl
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError

# Interim answers (1xx) included. A larger head ends as protocol_error.
MAX_HEAD_BYTES = 64 * 1024

# Head, body, and what frames the body. The sender reads 16 KiB of body and leaves, so this ends only an
# answer that never comes to its body, such as an endless chunk extension.
MAX_ANSWER_BYTES = 1024 * 1024

_HEAD_END = re.compile(rb"\n\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[0-9] 1[0-9][0-9]")
_STATUS_LINE_START = b"HTTP/"


@dataclass(slots=True)
class Peer:
    """The address that one send() talks to, or tried last; None before anything was dialled."""

    address: str | None = None


# Connections are made and answers begin deep inside the client, but in the context of their send().
peer_of_send: ContextVar[Peer] = ContextVar("peer_of_send")


class PeerNotingResponse(aiohttp.ClientResponse):
    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Notes the peer now: a short answer gives its connection back to the pool at once."""
        transport = connection.transport
        if transport is not None:
            peer_of_send.get().address = transport.get_extra_info("peername")[0]
        return await super().start(connection)


class HeadFirstConnector(aiohttp.TCPConnector):
    """Uses HeadFirstHandler for its connections, for which the client has no public hook."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType] - socket addresses are untyped
        self._factory = partial(HeadFirstHandler, self._loop)


class HeadFirstHandler(ResponseHandler):
    """Gives the head of an answer to the parser by itself and whole, and only then what follows it.

    The client's parser drops a complete head when something wrong comes after it in the same piece of data,
    and bounds neither the size of a head nor the number of interim answers.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._awaiting_head = False
        self._head = b""
        self._answer_bytes = 0
        self._arrivals: select.poll | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if hasattr(select, "poll"):  # there is none on Windows
            self._arrivals = select.poll()
            self._arrivals.register(transport.get_extra_info("socket"), select.POLLIN)

    def set_response_params(self, **params: Any) -> None:
        self._awaiting_head = True
        self._answer_bytes = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        self._answer_bytes += len(data)
        if data and (self._is_over() or self._answer_bytes > MAX_ANSWER_BYTES):
            self._drop()
        elif not self._awaiting_head:
            super().data_received(data)
        elif rest := self._take_heads(data):
            super().data_received(rest)

    def is_connected(self) -> bool:
        """Asked before a connection is used again.

        False also when it holds a second answer to one request, or when something has arrived, be it the end
        of the connection, that the event loop has not come to yet.
        """
        return super().is_connected() and len(self) == 0 and not self._has_arrivals()

    def _has_arrivals(self) -> bool:
        return self._arrivals is not None and bool(self._arrivals.poll(0))

    def _is_over(self) -> bool:
        """The exchange has ended, so what arrives now answers nothing."""
        began = self._parser is not None and not self._awaiting_head
        return began and (self._payload is None or self._payload.is_eof())

    def _take_heads(self, data: bytes) -> bytes:
        """Feeds each complete head up to the final one; returns what comes after that."""
        search_from = max(0, len(self._head) - 3)
        # Blank lines before a status line are skipped, as HTTP/1.1 advises (RFC 9112 §2.2).
        self._head = self._head + data if self._head else data.lstrip(b"\r\n")
        while end := _HEAD_END.search(self._head, search_from):
            head, self._head, search_from = self._head[: end.end()], self._head[end.end() :], 0
            self._awaiting_head = _INTERIM.match(head) is not None
            super().data_received(head)
            if not self._awaiting_head:
                rest, self._head = self._head, b""
                return rest
        self._refuse_odd_head()
        return b""

    def _refuse_odd_head(self) -> None:
        """Ends the wait for a head that is too large, or that is something else than HTTP/1."""
        if self._answer_bytes > MAX_HEAD_BYTES or not _STATUS_LINE_START.startswith(self._head[:5]):
            self._head = b""
            self._drop()
            self.set_exception(HttpProcessingError(message="no HTTP/1 answer, or one with too large a head"))

    def _drop(self) -> None:
        """Unlike abort(), leaves the state to connection_lost(), which ends whoever waits for the answer."""
        self.force_close()
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Ends the body too: after a malformed one the client would wait for the rest of it."""
        body = self._payload
        super().connection_lost(exc)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the connection ended before the body did"))

    def close(self) -> None:
        """Drops a connection with an exchange under way at once: a TLS farewell would wait for the peer."""
        if self._awaiting_head or (self._payload is not None and not self._payload.is_eof()):
            self.abort()
        else:
            super().close()


def client_tls(ca_file: str | None) -> ssl.SSLContext:
    """Verifies names and certificates, from TLS 1.2 on, and offers HTTP/1.1 alone.

    ca_file is a PEM bundle, trusted besides the system's. Raises OSError when it cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_default_certs()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context
