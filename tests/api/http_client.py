"""HTTP as bytes on a socket: no client library repairs what a test means to send."""

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, Literal

from tests.hostile_cases import note_answer

SECONDS = 60

Headers = Sequence[tuple[str, str | bytes]]


@dataclass(frozen=True)
class Answer:
    """Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Numbers too long for Python stay text."""
        return json.loads(self.body, parse_int=lambda digits: int(digits) if len(digits) < 4000 else digits)


def request_bytes(method: str | bytes, target: str | bytes, headers: Headers, body: bytes = b"") -> bytes:
    """A request just as it is given; nothing is added."""
    lines = [_bytes(method) + b" " + _bytes(target) + b" HTTP/1.1"]
    lines += [_bytes(name) + b": " + _bytes(value) for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def read_answer(connection: socket.socket, method: str = "GET") -> Answer:
    """Raises http.client.HTTPException or ConnectionError when the server hangs up without an answer."""
    response = http.client.HTTPResponse(_ReadNoFurther(connection), method=method)  # pyright: ignore[reportArgumentType]
    try:
        response.begin()
        body = response.read()
        headers = {name.lower(): value for name, value in response.getheaders()}
        is_problem = headers.get("content-type") == "application/problem+json"
        note_answer(response.status, json.loads(body) if is_problem and body else None)
        return Answer(response.status, headers, body)
    finally:
        response.close()


class _ReadNoFurther:
    """A connection of which a response reads its own bytes only: the next one may have arrived with it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def makefile(self, mode: Literal["rb"]) -> BufferedReader:
        return self._connection.makefile(mode, buffering=1)


class Api:
    """The API of one port, spoken to with one key."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port = port
        self.key = key

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def with_key(self, key: str | None) -> "Api":
        """The same API for another caller."""
        return Api(self.port, key)

    def headers(self, *more: tuple[str, str | bytes]) -> list[tuple[str, str | bytes]]:
        """Host and key, and those given."""
        own: list[tuple[str, str | bytes]] = [("host", f"127.0.0.1:{self.port}")]
        if self.key is not None:
            own.append(("authorization", f"Bearer {self.key}"))
        return [*own, *more]

    def send(self, data: bytes, method: str = "GET") -> Answer:
        """Bytes on a connection of their own, and the answer to them."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_answer(connection, method)

    def call(
        self,
        method: str,
        target: str | bytes,
        body: bytes | None = None,
        *more: tuple[str, str | bytes],
        content_type: str | None = "application/json",
    ) -> Answer:
        headers = self.headers(*more)
        if body is not None:
            headers.append(("content-length", str(len(body))))
            if content_type is not None:
                headers.append(("content-type", content_type))
        return self.send(request_bytes(method, target, headers, body or b""), method)

    def get(self, target: str) -> Answer:
        return self.call("GET", target)

    def post(self, target: str, content: Any = None) -> Answer:
        return self.call("POST", target, b"" if content is None else json.dumps(content).encode())

    def patch(self, target: str, content: Any) -> Answer:
        return self.call("PATCH", target, json.dumps(content).encode())

    def post_event(
        self,
        body: bytes,
        *more: tuple[str, str | bytes],
        content_type: str | None = "application/json",
    ) -> Answer:
        return self.call("POST", "/v1/events", body, *more, content_type=content_type)

    def good(self, method: str, target: str, content: Any = None) -> Any:
        """The content of an answer that must be 2xx."""
        body = None if content is None else json.dumps(content).encode()
        answer = self.call(method, target, body if method != "POST" or body else b"")
        assert 200 <= answer.status < 300, answer
        return answer.json() if answer.body else None


def event_body(event_type: str, payload: bytes = b"{}", ordering_key: str | None = None) -> bytes:
    """The payload stands in the body as it is given."""
    key = b"" if ordering_key is None else b'"ordering_key":"' + ordering_key.encode() + b'",'
    return b"{" + key + b'"event_type":"' + event_type.encode() + b'","payload":' + payload + b"}"


def assert_problem(answer: Answer, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """An RFC 9457 problem with this code; without a field given it must name none."""
    assert (answer.status, answer.json().get("code")) == (status, code), answer
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"] == f"/v1/docs#error-{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"].startswith("req_")
    assert problem.get("field") == field, problem
    return problem


def until_closed(connection: socket.socket) -> bytes:
    """Return everything received until the server closed or reset the connection."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received
