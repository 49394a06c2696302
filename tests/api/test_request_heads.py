"""A request head has a bound, however it is made large."""

import socket

import pytest

from hooksaga.worker.http_protocol import MAX_HEAD_BYTES
from tests.api.http_client import Api, request_bytes
from tests.hostile_cases import note

MORE_THAN_BUFFERS_HOLD = 64 * 2**20
"""A system buffers several MiB between two sockets, and a busy server may not have read one of them yet."""


def send_until_hung_up(api: Api, head: bytes, piece: bytes) -> bytes:
    """Send pieces and return the server's response before it closed, which must be before the last piece."""
    with api.connect() as connection:
        connection.sendall(head)
        for _ in range(MORE_THAN_BUFFERS_HOLD // len(piece)):
            try:
                connection.sendall(piece)
            except ConnectionError:
                break
        else:
            pytest.fail("the server took a head without end")
        try:
            said = connection.recv(200)
        except ConnectionError:
            said = b""
        note(said.split(b" ")[1].decode() if said else "connection closed")
        return said


@pytest.mark.hostile("Clients")
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"GET / HTTP/1.1\r\nx: ", b"a" * 65536),
        (b"GET / HTTP/1.1\r\n", b"x-name: value\r\n" * 4096),
        (b"GET /", b"a" * 65536),
    ],
    ids=["one header", "many headers", "the target"],
)
def test_a_head_without_end_is_hung_up_on(api: Api, head: bytes, piece: bytes) -> None:
    said = send_until_hung_up(api, head, piece)
    assert said == b"" or said.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
    assert api.get("/healthz").status == 200


def test_a_body_is_not_counted_as_head(api: Api) -> None:
    body = b'{"event_type":"head.test","payload":"' + b"x" * (3 * MAX_HEAD_BYTES) + b'"}'
    assert api.post_event(body).status == 202


def test_each_request_of_a_connection_has_a_head_of_its_own(api: Api) -> None:
    request = request_bytes("GET", "/healthz", api.headers(("x-padding", "a" * 8000)))
    many = 3 * MAX_HEAD_BYTES // len(request)
    assert many > 1
    with api.connect() as connection:
        for _ in range(many):
            connection.sendall(request)
            assert _read_one(connection).startswith(b"HTTP/1.1 200")


def _read_one(connection: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(4096)
    return answer
