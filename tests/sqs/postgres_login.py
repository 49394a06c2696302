"""A server that takes a PostgreSQL login over TLS, notes it, and refuses it: what is sent before is what counts."""

import socket
import ssl
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field

REFUSAL = b"SFATAL\x00VFATAL\x00C28000\x00Mnobody may log in here\x00\x00"
CLEARTEXT_PASSWORD = b"R" + struct.pack("!II", 8, 3)


@dataclass
class LoginServer:
    """`logins` holds user and password of everyone who trusted the certificate."""

    context: ssl.SSLContext
    logins: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __enter__(self) -> "LoginServer":
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(5)
                self._take_login(client)

    def _take_login(self, client: socket.socket) -> None:
        client.recv(8)  # SSLRequest
        client.sendall(b"S")
        with self.context.wrap_socket(client, server_side=True) as secure:
            words = _rest_of_message(secure)[4:].split(b"\0")
            parameters = dict(zip(words[::2], words[1::2], strict=False))
            secure.sendall(CLEARTEXT_PASSWORD)
            secure.recv(1)
            password = _rest_of_message(secure).rstrip(b"\0")
            self.logins.append((parameters[b"user"].decode(), password.decode()))
            secure.sendall(b"E" + struct.pack("!I", len(REFUSAL) + 4) + REFUSAL)


def _rest_of_message(connection: ssl.SSLSocket) -> bytes:
    (length,) = struct.unpack("!I", exactly(connection, 4))
    return exactly(connection, length - 4)


def exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := connection.recv(count - len(data))):
            raise ConnectionResetError
        data += more
    return data
