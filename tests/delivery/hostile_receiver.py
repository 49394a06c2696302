"""A TLS receiver that answers in raw bytes, so that it can do everything a receiver must not do.

Not the receiver of the product: that one behaves. This one listens on a loopback address, hands every request
to a behaviour, and remembers what arrived and how many connections were made.
"""

import asyncio
import contextlib
import os
import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


@dataclass
class ReceivedRequest:
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Exchange:
    """One connection of a client, with what a behaviour can do to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        self.reader = reader
        self.writer = writer
        self.connection = connection
        self.request = ReceivedRequest("", [], b"")
        self.sent = 0

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0)  # drain() need not yield, and the client lives in the same event loop
        self.sent += len(data)

    async def answer(self, status: int = 200, body: bytes = b"ok", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Made Up", *headers, f"Content-Length: {len(body)}"]
        await self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """Ends the TCP connection with RST instead of FIN."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def end_now(self) -> None:
        """Ends the sending half of the TCP connection within this call, under TLS and without its farewell."""
        raw = self.writer.get_extra_info("socket")
        with socket.socket(fileno=os.dup(raw.fileno())) as same:
            same.shutdown(socket.SHUT_WR)

    async def until_client_leaves(self) -> None:
        """Reads and drops what the client still sends, up to its end of the connection."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass

    async def read_request(self) -> bool:
        """False when the client has nothing more to ask."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return False
        start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        self.request = ReceivedRequest(start.split(" ")[1], headers, b"")
        return True

    async def read_body(self) -> None:
        self.request.body = await self.reader.readexactly(int(self.request.header("content-length") or 0))


Behaviour = Callable[[Exchange], Awaitable[None]]


async def well(exchange: Exchange) -> None:
    await exchange.answer()


def raw(data: bytes, *, then_close: bool = True) -> Behaviour:
    """Answers exactly these bytes, then closes or waits for the client to do so."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(data)
        if then_close:
            exchange.writer.close()
        else:
            await exchange.until_client_leaves()

    return behave


def endlessly(start: bytes, more: bytes) -> Behaviour:
    """Answers start, and then more for as long as the client takes it."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(more)

    return behave


def dribbling(start: bytes, more: bytes, pause: float = 0.02) -> Behaviour:
    """Answers start at once, and then more byte by byte."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(start)
        for byte in more:
            await exchange.send(bytes([byte]))
            await asyncio.sleep(pause)

    return behave


@dataclass
class Receiver:
    behave: Behaviour
    reads_body: bool = True
    port: int = 0
    connections: int = 0
    open_connections: int = 0
    requests: list[ReceivedRequest] = field(default_factory=list[ReceivedRequest])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.port}{path}"

    async def until(self, holds: Callable[["Receiver"], bool], seconds: float = 3) -> None:
        """Waits for a condition on what the receiver has seen; TimeoutError when it does not come true."""
        async with asyncio.timeout(seconds):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        exchange = Exchange(reader, writer, self.connections)
        self.exchanges.append(exchange)
        try:
            await self._converse(exchange)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client left, which is what many tests are about
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()  # the client has seen the end, too
            self.open_connections -= 1
            self.changed.set()

    async def _converse(self, exchange: Exchange) -> None:
        while not exchange.writer.is_closing() and await exchange.read_request():
            if self.reads_body:
                await exchange.read_body()
            self.requests.append(exchange.request)
            self.changed.set()
            await self.behave(exchange)


@asynccontextmanager
async def receiver(
    behave: Behaviour,
    tls: ssl.SSLContext | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    reads_body: bool = True,
) -> AsyncIterator[Receiver]:
    """Listens until the block ends, on a free port where none is given; tls None means plain TCP.

    With reads_body False the kernel takes little of a request's body, so that its sender has to wait.
    """
    received = Receiver(behave, reads_body)
    tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(received.serve(reader, writer))
        tasks[task] = writer
        # It closes itself, but not where it was cancelled before its first step.
        task.add_done_callback(lambda task: tasks.pop(task).close())

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    listening.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # asyncio leaves that out for such a socket
    if not reads_body:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server = await asyncio.start_server(connected, sock=listening, ssl=tls)
    received.port = listening.getsockname()[1]
    try:
        yield received
    finally:
        server.close()
        served = dict(tasks)
        for task, writer in served.items():
            task.cancel()
            writer.transport.abort()  # close() would wait for a client that does not read
        await asyncio.gather(*served, return_exceptions=True)


@asynccontextmanager
async def silent_listener() -> AsyncIterator[int]:
    """The port of a socket whose connections the kernel accepts and nobody serves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@asynccontextmanager
async def silent_after_handshake(tls: ssl.SSLContext) -> AsyncIterator[tuple[int, Awaitable[bool]]]:
    """A port, and whether the client closes TCP within 2 s of its request without hearing anything."""

    def be_silent() -> bool:
        plain = listening.accept()[0]
        with tls.wrap_socket(plain, server_side=True) as connection:
            connection.settimeout(3)
            connection.recv(1)
            with socket.socket(fileno=os.dup(connection.fileno())) as under_tls:
                under_tls.settimeout(2)
                return _reaches_its_end(under_tls)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        silence = asyncio.create_task(asyncio.to_thread(be_silent))
        yield listening.getsockname()[1], silence
        await silence


def _reaches_its_end(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def unused_port() -> int:
    """A port at which nothing listens: it was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


LOOPBACK_NAMES = ("127.0.0.1", "127.0.0.9")


class Authority:
    """A certificate authority of the tests' own, and server contexts with good and bad certificates."""

    def __init__(self, ca_file: Path) -> None:
        """Writes its certificate to ca_file."""
        self.ca_file = ca_file
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(str(ca_file))

    def tls(self, *names: str, age_days: int = 0) -> ssl.SSLContext:
        """For these names, or for 127.0.0.1 and 127.0.0.9.

        age_days moves the certificate's life of one day into the past, or the future.
        """
        start = datetime.now(UTC) - timedelta(days=age_days, hours=1)
        certificate = self._ca.issue_cert(
            *(names or LOOPBACK_NAMES), not_before=start, not_after=start + timedelta(days=1)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        return context

    def outdated_tls(self, version: ssl.TLSVersion) -> ssl.SSLContext:
        """Speaks that version and no other, with the ciphers that it needs."""
        context = self.tls()
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = version
            context.maximum_version = version
        return context
