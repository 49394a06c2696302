"""Sends one signed POST to an endpoint and returns the outcome. The only module that uses the HTTP client.

- One deadline covers DNS lookup, connect, TLS, request and response.
- Once the response head is complete, its status decides, whatever happens to the body.
- At most 16 KiB of the body are read. A connection with an incompletely read response is closed.
- A connection goes only to a permitted address: the resolver checks names, and every address is checked again when
  its socket is created, which covers literal hosts too.
- No redirects, cookies, decompression, or proxies from the environment.
- A second POST within the attempt happens only if a reused connection closed before the first byte of a response:
  once, on a new connection, with the same deadline.
"""

import asyncio
import errno
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from hooksaga.adapters.connection_pool import ConnectFailed, ConnectionPool, Origin
from hooksaga.adapters.http_connections import (
    Answer,
    EndedUnanswered,
    HttpConnection,
    MalformedAnswer,
    client_tls,
)
from hooksaga.adapters.resolver import AddressBlocked, Lookup, NameNotFound, ResolveFailed, VettedResolver
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.callback_url import InvalidCallbackUrl, UrlRule, parse_callback_url
from hooksaga.core.outcomes import ErrorCode, http_error, is_success
from hooksaga.core.responses import EXCERPT_BYTES, body_excerpt, headers_excerpt, retry_after_seconds

# Headers that frame the message, name its target or change the exchange are set by the sender only.
_FRAMING_HEADERS = frozenset(
    {"connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")
_TARGETS_KEPT = 4096


class BadRequestHeader(ValueError):
    """A header that HTTP/1.1 does not allow, or that only the sender may set."""


class ConnectTimedOut(Exception):
    """No address accepted the connection in time."""


class OutgoingRequest(msgspec.Struct, frozen=True):
    """A POST. url is a stored callback URL; headers are sent in order; body is sent unchanged."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_seconds: float


class SendOutcome(msgspec.Struct, frozen=True):
    """Outcome of one attempt. error_code is None exactly for a status from 200 to 299.

    response_body: the first 16 KiB as text, None without a response. response_truncated: the endpoint sent or
    announced more. response_headers: as headers_excerpt returns them. resolved_ip: the peer, or the last address
    tried. reconnected: a reused connection closed before the first byte of a response, and the attempt continued on a
    new one.
    """

    response_status: int | None
    error_code: str | None
    response_body: str | None
    response_truncated: bool
    retry_after_seconds: int | None
    resolved_ip: str | None
    duration_ms: int
    reconnected: bool = False
    response_headers: str | None = None


class HttpSender:
    """Sends any number of requests concurrently over reusable connections. Bound to the event loop of its first
    send()."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        connect_timeout_seconds: float = 5,
        ca_file: str | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        """ca_file: a PEM bundle trusted in addition to the system's. Raises OSError if it cannot be read."""
        self._policy = policy
        self._tls = client_tls(ca_file)
        self._resolver = VettedResolver(policy, lookup)
        self._connect_timeout_seconds = connect_timeout_seconds
        self._pool: ConnectionPool | None = None
        self._target = lru_cache(_TARGETS_KEPT)(self._parse_target)

    async def send(self, request: OutgoingRequest) -> SendOutcome:
        """Make one attempt. Every error is part of the outcome; only asyncio.CancelledError is raised."""
        attempt = _Attempt()
        try:
            await self._exchange(request, attempt)
        except Exception as fault:  # noqa: BLE001 - one subscription's fault must not fail its batch
            attempt.fault = fault
        return attempt.outcome()

    async def close(self) -> None:
        """Close all connections. Active requests end as connection_reset, connecting ones as internal_error."""
        if self._pool is not None:
            self._pool.close()
        await self._resolver.close()

    async def _exchange(self, request: OutgoingRequest, attempt: "_Attempt") -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout_seconds
        target = self._target(request.url)
        message = _message(target, request)
        pool = self._pool = self._pool or ConnectionPool(self._policy, self._resolver, self._tls)

        async def exchange_over(connection: HttpConnection) -> None:
            attempt.address = connection.address
            try:
                await connection.exchange(message, attempt.answer, deadline)
            finally:
                pool.give_back(target.origin, connection)

        if (reused := pool.take(target.origin)) is not None:
            try:
                await exchange_over(reused)
            except EndedUnanswered:
                # After the deadline another worker may own the lease: this process may have been suspended.
                if pool.is_closed or loop.time() >= deadline:
                    raise
                attempt.reconnected = True
            else:
                return
        await exchange_over(await self._open(pool, target.origin, attempt, deadline))

    async def _open(
        self, pool: ConnectionPool, origin: Origin, attempt: "_Attempt", deadline: float
    ) -> HttpConnection:
        connected_by = asyncio.get_running_loop().time() + self._connect_timeout_seconds
        try:
            async with asyncio.timeout_at(min(connected_by, deadline)):
                return await pool.open(origin, attempt.dial)
        except TimeoutError:
            if deadline <= connected_by:
                raise
            raise ConnectTimedOut from None

    def _parse_target(self, url: str) -> "_Target":
        """Check a stored URL by the current rules. Raises AddressBlocked or InvalidCallbackUrl."""
        try:
            parsed = parse_callback_url(url, self._policy)
        except InvalidCallbackUrl as fault:
            if fault.rule is UrlRule.ADDRESS:
                raise AddressBlocked(str(fault)) from fault
            raise
        authority, _, path = parsed.url.removeprefix("https://").partition("/")
        return _Target(Origin(parsed.host, parsed.port), f"POST /{path} HTTP/1.1\r\nHost: {authority}\r\n")


@dataclass(frozen=True, slots=True)
class _Target:
    """A parsed URL. head_start is its part of the request head."""

    origin: Origin
    head_start: str


@dataclass(slots=True)
class _Attempt:
    """State of one send(). It stores one byte more of the body than is returned, to detect truncation."""

    started: float = field(default_factory=time.monotonic)
    address: str | None = None
    answer: Answer = field(default_factory=lambda: Answer(most=EXCERPT_BYTES + 1))
    fault: Exception | None = None
    reconnected: bool = False

    def dial(self, address: str) -> None:
        self.address = address

    def outcome(self) -> SendOutcome:
        """Build the outcome. An error counts only without a status: later errors concern the body."""
        duration_ms = round((time.monotonic() - self.started) * 1000)
        status = self.answer.status
        if status is None:
            word = self._error_code()
            return SendOutcome(None, word, None, False, None, self.address, duration_ms, self.reconnected)
        excerpt, cut = body_excerpt(bytes(self.answer.body))
        return SendOutcome(
            response_status=status,
            error_code=None if is_success(status) else http_error(status),
            response_body=excerpt,
            response_truncated=cut or not self.answer.body_complete,
            retry_after_seconds=retry_after_seconds(self.answer.retry_after, time.time()),
            resolved_ip=self.address,
            duration_ms=duration_ms,
            reconnected=self.reconnected,
            response_headers=headers_excerpt(self.answer.headers),
        )

    def _error_code(self) -> str:
        word = _error_code(self.fault)
        # No address was tried: the lookup used up the connect timeout.
        if word is ErrorCode.TIMEOUT_CONNECT and self.address is None:
            word = ErrorCode.DNS_ERROR
        return word.value


def _message(target: _Target, request: OutgoingRequest) -> bytes:
    _check_headers(request.headers)
    lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
    head = f"{target.head_start}{lines}Content-Length: {len(request.body)}\r\n\r\n"
    return head.encode() + request.body


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _may_be_sent(name) or not (_is_plain(value) or _HEADER_VALUE.fullmatch(value)):
            raise BadRequestHeader(name)


def _is_plain(value: str) -> bool:
    """Fast path: nearly all values are printable ASCII, and the pattern takes several times as long."""
    return value.isascii() and value.isprintable()


@lru_cache(1024)
def _may_be_sent(name: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and name.lower() not in _FRAMING_HEADERS


# The first row that matches the exception or one of its causes gives the code. A number is an errno, which is more
# specific than the exception's class.
_WORDS: tuple[tuple[type[BaseException] | int, ErrorCode], ...] = (
    (AddressBlocked, ErrorCode.ADDRESS_BLOCKED),
    (NameNotFound, ErrorCode.DNS_NXDOMAIN),
    (ResolveFailed, ErrorCode.DNS_ERROR),
    (InvalidCallbackUrl, ErrorCode.INVALID_URL),
    (BadRequestHeader, ErrorCode.INTERNAL_ERROR),
    (ConnectTimedOut, ErrorCode.TIMEOUT_CONNECT),
    (ssl.SSLError, ErrorCode.TLS_ERROR),
    (MalformedAnswer, ErrorCode.PROTOCOL_ERROR),
    (errno.ECONNREFUSED, ErrorCode.CONNECTION_REFUSED),
    (errno.ETIMEDOUT, ErrorCode.TIMEOUT_CONNECT),
    (errno.EMFILE, ErrorCode.INTERNAL_ERROR),
    (errno.ENFILE, ErrorCode.INTERNAL_ERROR),
    (errno.ENOBUFS, ErrorCode.INTERNAL_ERROR),
    (errno.ENOMEM, ErrorCode.INTERNAL_ERROR),
    (errno.EADDRNOTAVAIL, ErrorCode.INTERNAL_ERROR),
    (ConnectionError, ErrorCode.CONNECTION_RESET),
    (ConnectFailed, ErrorCode.CONNECTION_REFUSED),
    (TimeoutError, ErrorCode.TIMEOUT_TOTAL),
    (OSError, ErrorCode.CONNECTION_RESET),
)


def _error_code(fault: BaseException | None) -> ErrorCode:
    links = list(_with_causes(fault))
    for kind, word in _WORDS:
        if any(_fits(link, kind) for link in links):
            return word
    return ErrorCode.INTERNAL_ERROR


def _with_causes(fault: BaseException | None) -> Iterator[BaseException]:
    while fault is not None:
        yield fault
        fault = fault.__cause__


def _fits(fault: BaseException, kind: type[BaseException] | int) -> bool:
    if isinstance(kind, int):
        return isinstance(fault, OSError) and fault.errno == kind
    return isinstance(fault, kind)
