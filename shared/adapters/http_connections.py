"""Kept TLS connections to receivers, and the exchange of one POST for one answer on each: HTTP/1.1, as much of it as
a webhook needs.

httptools parses answers, aiohappyeyeballs picks among a name's addresses, the ssl module of Python verifies. What a
receiver may cost is bounded here: the head of its answer, interim answers included, the whole answer, and how much of
its body is kept. What arrives outside of an exchange is never taken for an answer: the connection is dropped.
"""

import asyncio
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple, cast

import aiohappyeyeballs
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from shared.adapters.resolver import AddressBlocked, VettedResolver
from shared.core.address_policy import AddressPolicy

# Node's HTTP server, behind many receivers, closes a connection that was idle for 5 s. Reusing one at that
# very moment would cost the attempt, because a POST that may have arrived is not sent twice.
KEEPALIVE_SECONDS = 4.0

SWEEP_SECONDS = 1.0

# Interim answers (1xx) included. A larger head ends as protocol_error.
MAX_HEAD_BYTES = 64 * 1024

# Head, body, and what frames the body. Of the body 16 KiB are kept and the rest is not waited for, so this ends
# only an answer that never comes to its body, such as an endless chunk extension.
MAX_ANSWER_BYTES = 1024 * 1024

# RFC 8305 §5: a second address is tried beside the first one after so long.
_NEXT_ADDRESS_SECONDS = 0.25

# A farewell that a receiver does not return is not waited for.
_FAREWELL_SECONDS = 1.0

_SWITCHING_PROTOCOLS = 101

_AddressInfo = tuple[Any, ...]
"""As getaddrinfo tells of one address."""


class ConnectFailed(Exception):
    """No connection came about. The cause, an OSError, says why."""


class MalformedAnswer(Exception):
    """What came is no HTTP/1 answer, or has too large a head. Anything after a complete head is about the body."""


class Origin(NamedTuple):
    """Where connections go to, and may be used again. host is a name or an address without brackets."""

    host: str
    port: int


@dataclass(slots=True)
class Answer:
    """As much as has come: status is None until the head is complete; body holds most bytes at the most."""

    most: int
    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)
    body_complete: bool = False


class HttpConnection(asyncio.Protocol):
    """One exchange at a time, by `exchange`. Whoever gets an exception from it need not close the connection."""

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
        """Send a request and fill the answer, until it is complete or its body has as much as is kept.

        deadline is of the loop's clock. Raises TimeoutError, MalformedAnswer, ssl.SSLError, or OSError; the answer
        keeps what had come by then.
        """
        if not self.is_open:
            raise ConnectionResetError("the connection has ended")
        if deadline <= self._loop.time():
            raise TimeoutError
        self._answer = answer
        self._answer_bytes = 0
        self._is_interim = self._is_over = self._keeps_alive = self._has_excess = False
        self._ends_with_connection = True
        self._parser = _answer_parser(self)
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
            del self._parser, self._answer  # they hold each other and this

    @property
    def is_usable(self) -> bool:
        """Asked before a connection is used again. False also when something has arrived, be it the end of the
        connection, that the event loop has not come to yet, and while a request that was answered early is still
        being written: the transport's own count stops at TLS."""
        if self._poll is None:
            return self.is_open
        return self.is_open and [event for _, event in self._poll.poll(0)] == [select.POLLOUT]

    @property
    def is_open(self) -> bool:
        """False once it is closed, or is being closed."""
        return not (self._is_lost or self._transport.is_closing())

    def close(self) -> None:
        """With a farewell. For one without an exchange under way."""
        self._transport.close()

    def abort(self) -> None:
        """At once. An exchange that is under way ends with ConnectionError."""
        self._transport.abort()

    # The transport's calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if hasattr(select, "poll"):  # there is none on Windows
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket"), select.POLLIN | select.POLLOUT)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()
            return
        in_head = MAX_HEAD_BYTES - self._answer_bytes if self._answer.status is None else MAX_ANSWER_BYTES
        self._answer_bytes += len(data)
        try:
            self._parser.feed_data(data[:in_head])
            if self._answer.status is None and self._answer_bytes >= MAX_HEAD_BYTES:
                raise MalformedAnswer("the head is too large")
            if len(data) > in_head:
                self._parser.feed_data(data[in_head:])
        except HttpParserUpgrade:
            self._is_over = self._has_excess = True
        except (HttpParserError, MalformedAnswer) as fault:
            self._has_excess = True
            self._end(MalformedAnswer(str(fault)))
            return
        if self._is_over or len(self._answer.body) >= self._answer.most:
            self._end(None)
        elif self._answer_bytes > MAX_ANSWER_BYTES:
            self._end(MalformedAnswer("the answer never comes to its end"))

    def eof_received(self) -> bool:
        """Not left to the transport, which would first send what is left of the request. uvloop may do so all the same
        when the end comes without TLS's farewell: then the deadline ends it."""
        self._end_with_connection(None)
        self.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._end_with_connection(exc)
        self._on_lost(self)

    # The parser's calls.

    def on_message_begin(self) -> None:
        self._has_excess = self._is_over

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer.status is not None:
            return  # a trailer
        if b"\0" in value:
            raise MalformedAnswer("NUL in a header")
        name = name.lower()
        if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._ends_with_connection = False
        elif name == b"retry-after" and self._answer.retry_after is None:
            self._answer.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_over:
            return
        status = self._parser.get_status_code()
        if status < 100:
            raise MalformedAnswer(f"status {status}")
        self._is_interim = status < 200 and status != _SWITCHING_PROTOCOLS
        if self._is_interim:
            self._answer.retry_after, self._ends_with_connection = None, True
        else:
            self._answer.status = status

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
        return self._keeps_alive and not self._has_excess and self.is_open


def _answer_parser(protocol: HttpConnection) -> HttpResponseParser:
    """As lenient as browsers are: lines that end without CR, blanks behind a chunk's size, odd letters in values."""
    parser = HttpResponseParser(protocol)
    parser.set_dangerous_leniencies(
        lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


class ConnectionPool:
    """Connections that were opened and may be used again. Belongs to the loop that runs when it is made."""

    def __init__(self, policy: AddressPolicy, resolver: VettedResolver, tls: ssl.SSLContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._policy = policy
        self._resolver = resolver
        self._tls = tls
        self._idle: dict[Origin, list[HttpConnection]] = {}
        self._open: set[HttpConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, origin: Origin) -> HttpConnection | None:
        """The one that was used last; None when there is none that can be used."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.idle_since > self._oldest() and connection.is_usable:
                return connection
            connection.abort()
        return None

    def give_back(self, origin: Origin, connection: HttpConnection) -> None:
        """After an exchange. One that is closed is forgotten."""
        if not connection.is_open:
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(SWEEP_SECONDS, self._close_idle)

    async def open(self, origin: Origin, dialled: Callable[[str], None]) -> HttpConnection:
        """A new one. `dialled` is told of each address before it is tried. One that takes the connection and then
        fails in TLS is left for the next.

        Raises ConnectFailed, ssl.SSLError, AddressBlocked, NameNotFound, ResolveFailed, or RuntimeError once the
        pool is closed.
        """
        addresses = [origin.host] if _is_address(origin.host) else await self._resolver.addresses(origin.host)
        infos = [_address_info(address, origin.port) for address in addresses]
        while True:
            if self._is_closed:
                raise RuntimeError("the pool is closed")
            made: dict[socket.socket, _AddressInfo] = {}
            try:
                connected = await self._connect(infos, made, dialled)
            except OSError as fault:
                raise ConnectFailed(str(fault)) from fault
            info = made[connected]
            try:
                return await self._begin(connected, origin, str(info[4][0]))
            except OSError as fault:
                infos.remove(info)
                if not infos and isinstance(fault, ssl.SSLError):
                    raise
                if not infos:
                    raise ConnectFailed(str(fault)) from fault

    def close(self) -> None:
        """All of them, at once. One that is being opened is closed as soon as it is there."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self._open):
            connection.abort()
        self._idle.clear()

    async def _connect(
        self,
        infos: Sequence[_AddressInfo],
        made: dict[socket.socket, _AddressInfo],
        dialled: Callable[[str], None],
    ) -> socket.socket:
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        connected = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType] - untyped addresses
            infos,
            happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
            socket_factory=partial(self._open_socket, made, dialled),
        )
        if task and task.cancelling() > cancels:
            # A cancel that comes while the losers of the race are ended is swallowed there: a deadline would be lost.
            connected.close()
            raise asyncio.CancelledError
        return connected

    def _open_socket(
        self, made: dict[socket.socket, _AddressInfo], dialled: Callable[[str], None], info: _AddressInfo
    ) -> socket.socket:
        """The only place where a socket is made, so the only one that has to be right about addresses."""
        family, kind, protocol, _, address = info
        host = str(address[0])
        if not self._policy.permits(host):
            raise AddressBlocked(host)
        dialled(host)
        one = socket.socket(family, kind, protocol)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made[one] = info
        return one

    async def _begin(self, connected: socket.socket, origin: Origin, address: str) -> HttpConnection:
        _, connection = await self._loop.create_connection(  # which closes the socket when it fails
            lambda: HttpConnection(self._loop, address, self._open.discard),
            sock=connected,
            ssl=self._tls,
            server_hostname=origin.host,
            ssl_shutdown_timeout=_FAREWELL_SECONDS,
        )
        if self._is_closed:
            connection.abort()
            raise RuntimeError("the pool is closed")
        if connection.is_open:
            self._open.add(connection)
        return connection

    def _close_idle(self) -> None:
        """Those that have rested too long, the oldest of each origin first."""
        oldest = self._oldest()
        for origin, idle in tuple(self._idle.items()):
            while idle and (idle[0].idle_since <= oldest or not idle[0].is_open):
                idle.pop(0).close()
            if not idle:
                del self._idle[origin]
        self._sweep = self._loop.call_later(SWEEP_SECONDS, self._close_idle) if self._idle else None

    def _oldest(self) -> float:
        return self._loop.time() - KEEPALIVE_SECONDS


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _address_info(address: str, port: int) -> _AddressInfo:
    is_v6 = ":" in address
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    place = (address, port, 0, 0) if is_v6 else (address, port)
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place


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
