"""Listeners that break a connection before a request can arrive, and certificates that nobody vouches for."""

import asyncio
import contextlib
import socket
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.streams import closing


class Stage(StrEnum):
    """When the connection is reset."""

    ACCEPT = "accept"
    CLIENT_HELLO = "client hello"
    TLS = "tls"


@asynccontextmanager
async def resetting_listener(stage: Stage, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that ends each connection with RST at that stage."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if stage is Stage.CLIENT_HELLO:
            with contextlib.suppress(OSError):
                await reader.read(1)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(
        closing(reset), "127.0.0.1", 0, ssl=tls if stage is Stage.TLS else None
    )
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def plain_http_listener() -> AsyncIterator[int]:
    """The port of a server that takes the first bytes of TLS for a bad request, and says so in clear text."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            await writer.drain()

    async with await asyncio.start_server(closing(refuse), "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def handshake_only(tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of one TLS handshake, in a thread: unlike asyncio's servers it tells why it fails."""

    def shake() -> None:
        with contextlib.suppress(OSError), listening.accept()[0] as connection:
            tls.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        shaking = asyncio.create_task(asyncio.to_thread(shake))
        yield listening.getsockname()[1]
        await shaking


def self_signed_tls() -> ssl.SSLContext:
    """A good certificate for 127.0.0.1, but for that it is signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _context(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _context(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "self-signed.pem"
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context
