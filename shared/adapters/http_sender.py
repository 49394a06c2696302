"""One signed POST to one receiver, and what came of it. The only module that knows the HTTP client.

The rules (spec §7):

- One deadline covers look-up, connect, TLS, request and response.
- Once the head of the answer is complete its status decides, whatever happens to the body after it.
- Of the body at most 16 KiB are read. A connection whose answer was not read to its end is closed.
- A connection goes only to an address that the policy permits: names are vetted by the resolver, and every
  address once more at the moment its socket is made, which also covers literal hosts.
- No redirects, cookies, decompression, proxies from the environment, or second try.
"""

import asyncio
import errno
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from shared.adapters.http_connections import (
    HeadFirstConnector,
    Peer,
    PeerNotingResponse,
    client_tls,
    peer_of_send,
)
from shared.adapters.resolver import AddressBlocked, Lookup, NameNotFound, ResolveFailed, VettedResolver
from shared.core.address_policy import AddressPolicy
from shared.core.callback_url import InvalidCallbackUrl, UrlRule, parse_callback_url
from shared.core.outcomes import ErrorCode, http_error, is_success
from shared.core.responses import EXCERPT_BYTES, body_excerpt, retry_after_seconds

# Node's HTTP server, behind many receivers, closes a connection that was idle for 5 s. Reusing one at that
# very moment would cost the attempt, because a POST that may have arrived is not sent twice.
KEEPALIVE_SECONDS = 4.0

# Addresses that were vetted are used again for this long; a burst to one name makes one look-up.
DNS_CACHE_SECONDS = 10

MAX_HEADER_LINE_BYTES = 8 * 1024
MAX_HEADERS = 100

# They frame the message, name its target or change the exchange: they are the sender's own.
_FRAMING_HEADERS = frozenset(
    {"connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_TARGETS_KEPT = 4096


class BadRequestHeader(ValueError):
    """A header that no HTTP/1.1 request can carry, or that only the sender may set."""


class MalformedAnswer(Exception):
    """The client took the answer, but its status is none of HTTP's."""


class OutgoingRequest(msgspec.Struct, frozen=True):
    """A POST. url is a stored callback URL; headers are sent in their order; body is sent as it is."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_seconds: float


class SendOutcome(msgspec.Struct, frozen=True):
    """What came of one attempt. error_code is None exactly for an answer from 200 to 299.

    response_body is None without an answer, else its first 16 KiB as text; response_truncated says that the
    receiver sent, or meant to send, more. resolved_ip is the peer, or the last address that was tried.
    """

    response_status: int | None
    error_code: str | None
    response_body: str | None
    response_truncated: bool
    retry_after_seconds: int | None
    resolved_ip: str | None
    duration_ms: int


class HttpSender:
    """Sends any number of requests at once over kept connections. Belongs to the loop of its first send()."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        connect_timeout_seconds: float = 5,
        ca_file: str | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        """ca_file is a PEM bundle, trusted besides the system's. Raises OSError when it cannot be read."""
        self._policy = policy
        self._tls = client_tls(ca_file)
        self._resolver = VettedResolver(policy, lookup)
        self._connect_timeout_seconds = connect_timeout_seconds
        self._session: aiohttp.ClientSession | None = None
        self._target = lru_cache(_TARGETS_KEPT)(self._parse_target)

    async def send(self, request: OutgoingRequest) -> SendOutcome:
        """One attempt. Every fault is in the outcome; only asyncio.CancelledError is raised."""
        attempt = _Attempt()
        token = peer_of_send.set(attempt.peer)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                await self._exchange(request, attempt)
        except Exception as fault:  # noqa: BLE001 - one subscription's fault must not fail its batch
            attempt.fault = fault
        finally:
            peer_of_send.reset(token)
        return attempt.outcome()

    async def close(self) -> None:
        """Closes all connections. What is in flight ends as connection_reset."""
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    async def _exchange(self, request: OutgoingRequest, attempt: "_Attempt") -> None:
        target = self._target(request.url)
        _check_headers(request.headers)
        session = self._session or self._open_session()
        answer = await session.post(target, headers=request.headers, data=request.body, allow_redirects=False)
        try:
            attempt.take_head(answer)
            await attempt.read_body(answer.content)
        finally:
            answer.close()

    def _open_session(self) -> aiohttp.ClientSession:
        connector = HeadFirstConnector(
            resolver=self._resolver,
            ttl_dns_cache=DNS_CACHE_SECONDS,
            ssl=self._tls,
            limit=0,
            keepalive_timeout=KEEPALIVE_SECONDS,
            timeout_ceil_threshold=float("inf"),
            socket_factory=self._open_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            response_class=PeerNotingResponse,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_NOT_ADDED,
            auto_decompress=False,
            raise_for_status=False,
            trust_env=False,
            read_bufsize=EXCERPT_BYTES,
            max_line_size=MAX_HEADER_LINE_BYTES,
            max_field_size=MAX_HEADER_LINE_BYTES,
            max_headers=MAX_HEADERS,
        )
        return self._session

    def _open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """The only place where a socket is made, so the only one that has to be right about addresses."""
        family, kind, protocol, _, address = info
        host = str(address[0])
        if not self._policy.permits(host):
            raise AddressBlocked(host)
        peer_of_send.get().address = host
        return socket.socket(family, kind, protocol)

    def _parse_target(self, url: str) -> URL:
        """Today's rules for a URL that was stored earlier. Raises AddressBlocked or InvalidCallbackUrl."""
        try:
            parsed = parse_callback_url(url, self._policy)
        except InvalidCallbackUrl as fault:
            if fault.rule is UrlRule.ADDRESS:
                raise AddressBlocked(str(fault)) from fault
            raise
        return URL(parsed.url, encoded=True)


@dataclass(slots=True)
class _Attempt:
    """What is known so far about one send()."""

    started: float = field(default_factory=time.monotonic)
    peer: Peer = field(default_factory=Peer)
    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)
    body_complete: bool = False
    fault: Exception | None = None

    def take_head(self, response: aiohttp.ClientResponse) -> None:
        """From here on the status decides. Raises MalformedAnswer when it is none."""
        if response.status < 100:
            raise MalformedAnswer(f"status {response.status}")
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")

    async def read_body(self, content: aiohttp.StreamReader) -> None:
        """Stops one byte after the excerpt: enough to know that there is more."""
        while len(self.body) <= EXCERPT_BYTES:
            chunk = await content.read(EXCERPT_BYTES + 1 - len(self.body))
            if not chunk:
                self.body_complete = True
                return
            self.body += chunk

    def outcome(self) -> SendOutcome:
        """A fault counts only without a status: after the head of the answer it is about the body."""
        duration_ms = round((time.monotonic() - self.started) * 1000)
        if self.status is None:
            return SendOutcome(None, self._error_word(), None, False, None, self.peer.address, duration_ms)
        excerpt, cut = body_excerpt(bytes(self.body))
        return SendOutcome(
            response_status=self.status,
            error_code=None if is_success(self.status) else http_error(self.status),
            response_body=excerpt,
            response_truncated=cut or not self.body_complete,
            retry_after_seconds=retry_after_seconds(self.retry_after, time.time()),
            resolved_ip=self.peer.address,
            duration_ms=duration_ms,
        )

    def _error_word(self) -> str:
        word = _error_word(self.fault)
        # Nothing was dialled, so the look-up had used up the time for connecting.
        if word is ErrorCode.TIMEOUT_CONNECT and self.peer.address is None:
            word = ErrorCode.DNS_ERROR
        return word.value


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _may_be_sent(name) or not (_is_plain(value) or _HEADER_VALUE.fullmatch(value)):
            raise BadRequestHeader(name)


def _is_plain(value: str) -> bool:
    """Nearly every value is; the pattern takes several times as long."""
    return value.isascii() and value.isprintable()


@lru_cache(1024)
def _may_be_sent(name: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and name.lower() not in _FRAMING_HEADERS


# The first row that fits the fault or one of its causes gives the word. A number is an errno: what the
# operating system said is more exact than the class that the client wraps it in.
_WORDS: tuple[tuple[type[BaseException] | int, ErrorCode], ...] = (
    (AddressBlocked, ErrorCode.ADDRESS_BLOCKED),
    (NameNotFound, ErrorCode.DNS_NXDOMAIN),
    (ResolveFailed, ErrorCode.DNS_ERROR),
    (InvalidCallbackUrl, ErrorCode.INVALID_URL),
    (aiohttp.InvalidURL, ErrorCode.INVALID_URL),
    (BadRequestHeader, ErrorCode.INTERNAL_ERROR),
    (aiohttp.ConnectionTimeoutError, ErrorCode.TIMEOUT_CONNECT),
    (ssl.SSLError, ErrorCode.TLS_ERROR),
    (aiohttp.ClientResponseError, ErrorCode.PROTOCOL_ERROR),
    (MalformedAnswer, ErrorCode.PROTOCOL_ERROR),
    (aiohttp.ClientPayloadError, ErrorCode.PROTOCOL_ERROR),
    (errno.ECONNREFUSED, ErrorCode.CONNECTION_REFUSED),
    (errno.ETIMEDOUT, ErrorCode.TIMEOUT_CONNECT),
    (errno.EMFILE, ErrorCode.INTERNAL_ERROR),
    (errno.ENFILE, ErrorCode.INTERNAL_ERROR),
    (errno.ENOBUFS, ErrorCode.INTERNAL_ERROR),
    (errno.ENOMEM, ErrorCode.INTERNAL_ERROR),
    (errno.EADDRNOTAVAIL, ErrorCode.INTERNAL_ERROR),
    (ConnectionError, ErrorCode.CONNECTION_RESET),
    (aiohttp.ClientConnectorError, ErrorCode.CONNECTION_REFUSED),
    (aiohttp.ClientConnectionError, ErrorCode.CONNECTION_RESET),
    (TimeoutError, ErrorCode.TIMEOUT_TOTAL),
)


def _error_word(fault: BaseException | None) -> ErrorCode:
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
