"""One HTTP/1.1 exchange at a time on a reusable TLS connection, with the subset of HTTP that webhooks need.

httptools parses responses; Python's ssl module verifies certificates. The size of the response head (with interim
responses), of the whole response and of the stored body is limited. Data that arrives outside an exchange is never
taken for a response: the connection is closed. A connection is not reused if more of the response may follow.
"""

import asyncio
import select
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from hooksaga.core.lenient_heads import LenientHead, MalformedHead, has_no_body

# With interim responses (1xx). A larger head ends as protocol_error; curl, Go and browsers accept this much.
MAX_HEAD_BYTES = 256 * 1024

# Head, body and framing. Reading stops after 16 KiB of body, so this limit ends only responses that never reach their
# body, such as an endless chunk extension.
MAX_ANSWER_BYTES = 1024 * 1024

_SWITCHING_PROTOCOLS = 101


class MalformedAnswer(Exception):
    """The response is not HTTP/1, or its head is too large. Later errors concern the body."""


class EndedUnanswered(ConnectionResetError):
    """The connection closed before the first byte of a response."""


MAX_HEADER_BYTES = 16_384
"""Headers of a response are kept up to this size: four bytes for each character that an attempt stores."""


@dataclass(slots=True)
class Answer:
    """The response so far: status is None until the head is complete; headers are in their order, as far as there is
    header_room for them; body holds at most `most` bytes."""

    most: int
    status: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    header_room: int = MAX_HEADER_BYTES
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)
    body_complete: bool = False


class HttpConnection(asyncio.Protocol):
    """A connection with one exchange at a time. After an exception the connection is closed."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, address: str, on_lost: Callable[["HttpConnection"], None]
    ) -> None:
        self.address = address
        self.idle_since = 0.0
        self._loop = loop
        self._on_lost = on_lost
        self._waiter: asyncio.Future[None] | None = None
        self._is_lost = False
        self._poll: select.poll | None = None

    async def exchange(self, message: bytes, answer: Answer, deadline: float) -> None:
        """Send a request and fill `answer` until it is complete or its body has reached its limit.

        deadline is a time of the loop's clock. Raises TimeoutError, MalformedAnswer, EndedUnanswered, or another
        OSError; `answer` keeps what arrived before.
        """
        if not self.is_open:
            raise EndedUnanswered("the connection has ended")
        if deadline <= self._loop.time():
            raise TimeoutError
        self._answer = answer
        self._answer_bytes = 0
        self._head = bytearray()
        self._lenient_head: LenientHead | None = None
        self._is_over = self._keeps_alive = self._must_close = False
        self._parser = _answer_parser(self)
        self.on_message_begin()
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._end, TimeoutError())
        try:
            self._transport.write(message)
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None
            if not self._may_be_kept():
                self.abort()
            del self._parser, self._answer  # break the reference cycle

    @property
    def is_usable(self) -> bool:
        """Return whether the connection can be reused. False also if data or the end of the stream has arrived that
        the event loop has not processed yet, and while a request that was answered early is still being written."""
        if self._poll is None:
            return self.is_open
        return self.is_open and [event for _, event in self._poll.poll(0)] == [select.POLLOUT]

    @property
    def is_open(self) -> bool:
        return not (self._is_lost or self._transport.is_closing())

    def close(self) -> None:
        """Close gracefully. Call this only without an active exchange."""
        self._transport.close()

    def abort(self) -> None:
        """Close at once. An active exchange ends with ConnectionError."""
        self._transport.abort()

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if peer := transport.get_extra_info("peername"):  # None if it was reset at once
            self.address = str(peer[0])
        if hasattr(select, "poll"):  # not available on Windows
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket"), select.POLLIN | select.POLLOUT)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()
            return
        self._answer_bytes += len(data)
        try:
            if self._answer.status is None:
                self._feed_head(data)
            else:
                self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._is_over = self._must_close = True
        except (HttpParserError, MalformedHead, MalformedAnswer) as fault:
            self._must_close = True
            self._end(MalformedAnswer(str(fault)))
            return
        if self._is_over or len(self._answer.body) >= self._answer.most:
            self._end(None)
        elif self._answer_bytes > MAX_ANSWER_BYTES:
            self._end(MalformedAnswer("the answer never comes to its end"))

    def _feed_head(self, data: bytes) -> None:
        """Parse data that begins in the head. A head that the strict parser rejects is parsed leniently."""
        room = MAX_HEAD_BYTES - len(self._head)
        head, rest = data[:room], data[room:]
        self._head += head
        try:
            if self._lenient_head is None:
                self._parser.feed_data(head)
        except HttpParserError:
            if self._answer.status is not None:
                raise  # an error of the body
            self._lenient_head, head = LenientHead(), bytes(self._head)
        if self._lenient_head is not None:
            self._feed_lenient_head(self._lenient_head, head)
        if self._answer.status is None and len(self._head) >= MAX_HEAD_BYTES:
            raise MalformedAnswer("the head is too large")
        if rest:
            self._parser.feed_data(rest)

    def _feed_lenient_head(self, lenient_head: LenientHead, data: bytes) -> None:
        self._must_close = True
        if strict := lenient_head.feed(data):
            self._parser = _answer_parser(self)
            self._forget_headers()
            self._parser.feed_data(strict)

    def eof_received(self) -> bool:
        """Close at once. The transport's default would first send the rest of the request. uvloop may do that if the
        end comes without close_notify; then the deadline ends the exchange."""
        self._end_with_connection(None)
        self.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._end_with_connection(exc)
        self._on_lost(self)

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._must_close = self._must_close or self._is_over  # a second response
        self._is_interim = self._announces_body = False
        self._ends_with_connection = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer.status is not None:
            return  # a trailer
        if self._answer.header_room > 0:
            self._answer.headers.append((name, value))
            self._answer.header_room -= len(name) + len(value)
        name = name.lower()
        if name == b"content-length":
            self._ends_with_connection = False
            self._announces_body = self._announces_body or value.strip(b" 0") != b""
        elif name == b"transfer-encoding":
            self._announces_body = True
            if b"chunked" in value.lower():
                self._ends_with_connection = False
        elif name == b"retry-after" and self._answer.retry_after is None:
            self._answer.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_over:
            return
        status = self._parser.get_status_code()
        if status < 100 or not self._head.lstrip(b"\r\n").startswith(b"HTTP/1."):
            raise MalformedAnswer("not an HTTP/1 answer")
        if has_no_body(status) and self._announces_body:
            self._must_close = True  # the announced body may still follow
        self._is_interim = status < 200 and status != _SWITCHING_PROTOCOLS
        if self._is_interim:
            self._forget_headers()
        else:
            self._answer.status = status

    def _forget_headers(self) -> None:
        self._answer.retry_after = None
        self._answer.headers.clear()
        self._answer.header_room = MAX_HEADER_BYTES

    def on_body(self, body: bytes) -> None:
        if not self._is_over:
            self._answer.body += body[: self._answer.most - len(self._answer.body)]

    def on_message_complete(self) -> None:
        if not self._is_interim and not self._is_over:
            self._is_over = self._answer.body_complete = True
            self._keeps_alive = self._parser.should_keep_alive()

    def _end_with_connection(self, fault: Exception | None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if fault is None and self._answer.status is not None and self._ends_with_connection:
            self._answer.body_complete = True
            self._end(None)
        elif not self._head.strip(b"\r\n"):
            unanswered = EndedUnanswered("the connection ended without an answer")
            unanswered.__cause__ = fault
            self._end(unanswered)
        else:
            self._end(fault or ConnectionResetError("the connection ended before the answer did"))

    def _end(self, fault: Exception | None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if fault is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(fault)

    def _may_be_kept(self) -> bool:
        return self._keeps_alive and not self._must_close and self.is_open


def _answer_parser(protocol: HttpConnection) -> HttpResponseParser:
    """Create a parser that accepts lines without CR and blanks after a chunk size. LenientHead handles other heads."""
    parser = HttpResponseParser(protocol)
    parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
    return parser


def client_tls(ca_file: str | None) -> ssl.SSLContext:
    """Create a TLS context that verifies names and certificates, requires TLS 1.2, and offers HTTP/1.1 only.

    ca_file: a PEM bundle trusted in addition to the system's. Raises OSError if it cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_default_certs()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context
