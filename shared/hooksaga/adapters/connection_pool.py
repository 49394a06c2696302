"""Connections to endpoints: opened to permitted addresses, reused, and closed when idle.

A connection goes only to a permitted address: the resolver checks names, and every address is checked again where its
socket is created, which covers literal hosts too. aiohappyeyeballs selects among the addresses of a name.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple

import aiohappyeyeballs

from hooksaga.adapters.http_connections import HttpConnection
from hooksaga.adapters.resolver import AddressBlocked, VettedResolver
from hooksaga.core.address_policy import AddressPolicy

# Node's HTTP server, which many endpoints use, closes connections that are idle for 5 s. Reusing one at that moment
# costs a second POST.
KEEPALIVE_SECONDS = 4.0

SWEEP_SECONDS = 1.0

# RFC 8305 §5: delay before a second address is tried in parallel.
_NEXT_ADDRESS_SECONDS = 0.25

# Closing does not wait for the endpoint's close_notify.
_CLOSE_SECONDS = 1.0

_AddressInfo = tuple[Any, ...]
"""One entry of the result of getaddrinfo."""


class ConnectFailed(Exception):
    """No connection could be opened. The cause is an OSError."""


class Origin(NamedTuple):
    """Target of reusable connections. host is a name or an address without brackets."""

    host: str
    port: int


class ConnectionPool:
    """Open connections for reuse. Bound to the event loop in which it is created."""

    def __init__(self, policy: AddressPolicy, resolver: VettedResolver, tls: ssl.SSLContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._policy = policy
        self._resolver = resolver
        self._tls = tls
        self._idle: dict[Origin, list[HttpConnection]] = {}
        self._open: set[HttpConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self.is_closed = False

    def take(self, origin: Origin) -> HttpConnection | None:
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.idle_since > self._oldest() and connection.is_usable:
                return connection
            connection.abort()
        return None

    def give_back(self, origin: Origin, connection: HttpConnection) -> None:
        """Return a connection after an exchange. Closed ones are dropped."""
        if not connection.is_open:
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(SWEEP_SECONDS, self._close_idle)

    async def open(self, origin: Origin, dialled: Callable[[str], None]) -> HttpConnection:
        """Open a new connection. `dialled` is called with each address before it is tried. If TLS fails on an address
        that accepted the connection, the next address is tried.

        Raises ConnectFailed, ssl.SSLError, AddressBlocked, NameNotFound, ResolveFailed, or RuntimeError once the pool
        is closed.
        """
        addresses = [origin.host] if is_address(origin.host) else await self._resolver.addresses(origin.host)
        infos = [_address_info(address, origin.port) for address in addresses]
        while True:
            if self.is_closed:
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
        """Close all connections at once. A connection that is being opened is closed when it is established."""
        self.is_closed = True
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
            # aiohappyeyeballs swallows a cancel that arrives while it ends the losing attempts; a deadline would be
            # lost.
            connected.close()
            raise asyncio.CancelledError
        return connected

    def _open_socket(
        self, made: dict[socket.socket, _AddressInfo], dialled: Callable[[str], None], info: _AddressInfo
    ) -> socket.socket:
        """The only place that creates a socket, and therefore the place that enforces the address policy."""
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
            ssl_shutdown_timeout=_CLOSE_SECONDS,
        )
        if self.is_closed:
            connection.abort()
            raise RuntimeError("the pool is closed")
        if connection.is_open:
            self._open.add(connection)
        return connection

    def _close_idle(self) -> None:
        """Close connections that were idle too long, oldest first per origin."""
        oldest = self._oldest()
        for origin, idle in tuple(self._idle.items()):
            while idle and (idle[0].idle_since <= oldest or not idle[0].is_open):
                idle.pop(0).close()
            if not idle:
                del self._idle[origin]
        self._sweep = self._loop.call_later(SWEEP_SECONDS, self._close_idle) if self._idle else None

    def _oldest(self) -> float:
        return self._loop.time() - KEEPALIVE_SECONDS


def is_address(host: str) -> bool:
    """Return whether a host is a literal address, without brackets."""
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
