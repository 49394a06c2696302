"""Test subscriber that can fail on purpose: `hooksaga receiver`, and the receiver of the demo.

It uses TLS, verifies signatures with the independent `standardwebhooks` package, answers the verification challenge on
every path, and otherwise behaves as the path says:

    /ok             200                         /reset          resets the connection
    /status/CODE    that status                 /hang           never answers
    /flaky/N        503 N times per webhook-id  /huge/BYTES     a body of that size
    /down           503 until fixed             /drip           one byte of body per second
    /slow/MS        200 after a wait

Further path segments (`/down/second`) distinguish several subscribers of one kind.

Control, on the same port: GET /_received; POST /_fix, with {"path": "/down"} or without for all; POST /_secret with
{"path": "/ok", "secret": "whsec_..."}; a path may have several secrets.
"""

import asyncio
import signal
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from hooksaga.local.receiver_checks import BoundedCounts, SignatureChecks, challenge_in, json_object
from hooksaga.local.receiver_journal import Journal, Signature
from hooksaga.local.tls import Certificates, ensure_certificates
from hooksaga.worker import event_loop

CHUNK = bytes(65536)
STOP_SECONDS = 1.0
LINGER_ON_FOR_NO_TIME = struct.pack("HH" if sys.platform == "win32" else "ii", 1, 0)

Answer = Callable[[web.BaseRequest, str], Awaitable[web.StreamResponse]]


class Receiver:
    """State and answers, without a port; `serve` listens. Bound to one event loop.

    `quiet`: only counts are recorded, for measurements. `tell`: gets one line of text for each request that is answered
    or given up.
    """

    def __init__(
        self,
        *,
        secret: str | None = None,
        quiet: bool = False,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._tell = tell
        self.journal = Journal(keep=not quiet)
        self.checks = SignatureChecks(secret)
        self._failures = BoundedCounts()
        self._fixed: set[str] = set()
        self._all_fixed = False
        self._answers: dict[str, Answer] = {
            "status": self._status,
            "flaky": self._flaky,
            "down": self._down,
            "slow": self._slow,
            "reset": self._reset,
            "hang": self._hang,
            "huge": self._huge,
            "drip": self._drip,
        }

    def fix(self, path: str | None = None) -> None:
        """Answer 200 from now on at one `/down` path, or at all of them."""
        if path is None:
            self._all_fixed = True
        else:
            self._fixed.add(path)

    def add_secret(self, path: str, secret: str) -> None:
        """Verify signatures of a path; a valid signature by any of its secrets suffices. Raises ValueError for an
        invalid secret."""
        self.checks.add(path, secret)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith("/_"):
            return await self._control(request)
        if request.method != "POST":
            return web.Response(status=405, text=__doc__, headers={"Allow": "POST"})
        body = await request.read()
        signature = self.checks.check(path, request.headers, body)
        self.journal.write(path, request.headers, body, signature)
        challenge = challenge_in(body)
        if self._tell is None:
            return await self._answer(request, path, signature, challenge)
        what, said = _summary(request.headers, challenge), "nothing"
        try:
            response = await self._answer(request, path, signature, challenge)
            gone = request.transport is None or request.transport.is_closing()
            said = "nothing" if gone else str(response.status)
            return response
        except web.HTTPException as error:
            said = str(error.status)
            raise
        finally:
            self._tell(f"{path}  {what}  signature {signature.value}  answered {said}")

    async def _answer(
        self, request: web.BaseRequest, path: str, signature: Signature, challenge: str | None
    ) -> web.StreamResponse:
        if signature is Signature.BAD:
            return web.Response(status=401, text="bad signature")
        if challenge is not None:
            return web.json_response({"challenge": challenge})
        kind, _, rest = path[1:].partition("/")
        if kind == "ok":
            return web.Response()
        answer = self._answers.get(kind)
        return web.Response(status=404) if answer is None else await answer(request, rest.partition("/")[0])

    async def _status(self, request: web.BaseRequest, code: str) -> web.Response:
        """Redirects lead to /ok, where a client that follows them shows up. ?retry_after=5 sets a header."""
        status = _number(code, 200, 599)
        headers = {"Location": "/ok"} if 300 <= status < 400 else {}
        if "retry_after" in request.query:
            headers["Retry-After"] = request.query["retry_after"]
        return web.Response(status=status, headers=headers)

    async def _flaky(self, request: web.BaseRequest, times: str) -> web.Response:
        delivery = request.headers.get("webhook-id", "")
        seen = self._failures.count(f"{request.path} {delivery}")
        return web.Response(status=503 if seen <= _number(times) else 200)

    async def _down(self, request: web.BaseRequest, _: str) -> web.Response:
        up = self._all_fixed or request.path in self._fixed
        return web.Response(status=200 if up else 503)

    async def _slow(self, _: web.BaseRequest, milliseconds: str) -> web.Response:
        await asyncio.sleep(_number(milliseconds) / 1000)
        return web.Response()

    async def _reset(self, request: web.BaseRequest, _: str) -> web.Response:
        if request.transport is not None:
            _send_reset_on_close(request.transport)
            request.transport.abort()
        return web.Response()

    async def _hang(self, _request: web.BaseRequest, _: str) -> web.Response:
        """Wait until the client disconnects or the server stops; both cancel it."""
        await asyncio.Event().wait()
        return web.Response()

    async def _huge(self, request: web.BaseRequest, size: str) -> web.StreamResponse:
        left = _number(size)
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ClientConnectionResetError):
            while left > 0:
                await response.write(CHUNK[:left])
                left -= len(CHUNK)
            await response.write_eof()
        return response

    async def _drip(self, request: web.BaseRequest, _: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ClientConnectionResetError):
            while True:
                await response.write(b".")
                await asyncio.sleep(1)
        return response

    async def _control(self, request: web.BaseRequest) -> web.Response:
        command = (request.method, request.path)
        if command == ("GET", "/_received"):
            return web.json_response(self.journal.as_json(request.query.get("path")))
        if command == ("POST", "/_fix"):
            path = json_object(await request.read()).get("path")
            self.fix(path if isinstance(path, str) else None)
            return web.Response(status=204)
        if command == ("POST", "/_secret"):
            return self._take_secret(json_object(await request.read()))
        return web.Response(status=404)

    def _take_secret(self, body: dict[str, Any]) -> web.Response:
        try:
            self.add_secret(str(body["path"]), str(body["secret"]))
        except (KeyError, ValueError):
            return web.Response(status=422, text='wanted: {"path": "/ok", "secret": "whsec_..."}')
        return web.Response(status=204)


@dataclass(frozen=True)
class RunningReceiver:
    """`url` has no path and no trailing slash."""

    url: str
    receiver: Receiver
    _runner: web.ServerRunner

    async def stop(self) -> None:
        """Stop listening; requests that hang longer than STOP_SECONDS are cut off."""
        await self._runner.cleanup()


async def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    certificates: Certificates,
    receiver: Receiver | None = None,
) -> RunningReceiver:
    """Listen in this event loop; port 0 selects a free one. Raises OSError if the port is in use."""
    receiver = receiver or Receiver()
    # Cancel: a hanging response must not outlive its client.
    server = web.Server(receiver.handle, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    context = certificates.server_context()
    site = web.TCPSite(runner, host, port, ssl_context=context, backlog=1024)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    name = f"[{host}]" if ":" in host else host
    return RunningReceiver(f"https://{name}:{runner.addresses[0][1]}", receiver, runner)


def run_receiver(
    host: str,
    port: int,
    *,
    data_dir: Path,
    announce: Callable[[str], object],
    tell: Callable[[str], object] | None = None,
    secret: str | None = None,
    quiet: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` is called once, with the URL, and `tell` as Receiver does."""
    certificates = ensure_certificates(data_dir)

    async def run() -> None:
        receiver = Receiver(secret=secret, quiet=quiet, tell=tell)
        running = await serve(host, port, certificates=certificates, receiver=receiver)
        announce(running.url)
        try:
            await _stop_signal()
        finally:
            await running.stop()

    with suppress(KeyboardInterrupt):
        event_loop.run(run())


async def _stop_signal() -> None:
    stop = asyncio.Event()
    if sys.platform != "win32":  # there Ctrl-C arrives as KeyboardInterrupt
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def _summary(headers: Mapping[str, str], challenge: str | None) -> str:
    """Return what a request brings: the challenge of a verification, or an event."""
    if challenge is not None:
        return "verification"
    event_type, attempt = headers.get("hooksaga-event-type", "?"), headers.get("hooksaga-attempt", "?")
    return f"{event_type}  attempt {attempt}  {headers.get('webhook-id', '?')}"


def _number(text: str, low: int = 0, high: int = 1 << 40) -> int:
    """Raise HTTPBadRequest, which the server sends, for anything but a number in the range."""
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if not low <= number <= high:
        raise web.HTTPBadRequest(text=f"wanted a number from {low} to {high}, not {text!r}")
    return number


def _send_reset_on_close(transport: asyncio.Transport) -> None:
    """Make closing send a TCP reset; otherwise the client would see a regular end."""
    descriptor = transport.get_extra_info("socket").fileno()
    with socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as copy:
        copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ON_FOR_NO_TIME)
