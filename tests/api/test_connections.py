"""Connections that send nothing, half of a request or too slowly, or that come in masses, end; and the Host header."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from hooksaga.worker import connection_table, http_protocol
from tests.api.http_client import (
    Answer,
    Api,
    assert_problem,
    event_body,
    read_answer,
    request_bytes,
    until_closed,
)
from tests.api.running_system import RunningSystem, wait_until
from tests.hostile_cases import note

SHORT = 0.3
GET_HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def swept(monkeypatch: pytest.MonkeyPatch, running: RunningSystem) -> Iterator[None]:
    """Each test begins and ends without a connection."""
    monkeypatch.setattr(connection_table, "SWEEP_SECONDS", 0.05)
    wait_until(lambda: not open_connections(running), "the connections of the test before are closed")
    yield
    wait_until(lambda: not open_connections(running), "every connection is closed")


def open_connections(running: RunningSystem) -> int:
    return len(running.server.connections)


def short(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setattr(http_protocol, name, SHORT)


@pytest.mark.hostile("Clients")
def test_a_connection_without_a_request_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch, "IDLE_SECONDS")
    with api.connect() as connection:
        assert until_closed(connection) == b""
        note("connection closed after 30 s")


@pytest.mark.hostile("Clients")
def test_a_connection_between_two_requests_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch, "IDLE_SECONDS")
    with api.connect() as connection:
        connection.sendall(GET_HEALTH)
        assert until_closed(connection).startswith(b"HTTP/1.1 200")
        note("connection closed after 30 s")


@pytest.mark.hostile("Clients")
@pytest.mark.parametrize("sent", [b"G", b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a", b"\r\n"], ids=repr)
def test_half_of_a_head(api: Api, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    short(monkeypatch, "HEAD_SECONDS")
    with api.connect() as connection:
        connection.sendall(sent)
        assert_problem(read_answer(connection), 408, "head_too_slow")
        assert until_closed(connection) == b""


def drip(connection: socket.socket) -> bytes:
    """Send a byte every 20 ms until the server closes. What came."""
    connection.settimeout(0.02)
    give_up, received = time.monotonic() + 20, b""
    while time.monotonic() < give_up:
        try:
            connection.sendall(b"x")
            piece = connection.recv(65536)
        except TimeoutError:
            continue
        except ConnectionError:
            return received
        if not piece:
            return received
        received += piece
    pytest.fail("the server waits for ever")


@pytest.mark.hostile("Clients")
def test_a_head_byte_by_byte(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no connection open."""
    short(monkeypatch, "HEAD_SECONDS")
    with api.connect() as connection:
        connection.sendall(b"GET /")
        assert drip(connection).startswith(b"HTTP/1.1 408")
        note("408 head_too_slow")


@pytest.mark.hostile("Clients")
def test_a_body_that_drips_on_after_its_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn's own timer is reset by every byte."""
    short(monkeypatch, "HEAD_SECONDS")
    head = b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
    with api.connect() as connection:
        connection.sendall(head)
        assert read_answer(connection).status == 200
        assert drip(connection) == b""
        note("answered; connection closed after 10 s")


@pytest.mark.hostile("Clients")
def test_a_client_that_reads_no_answer(
    api: Api, running: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers fill every buffer on the way; closing would wait for it."""
    short(monkeypatch, "SEND_SECONDS", "IDLE_SECONDS")
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", api.port))
        deaf.setblocking(False)
        request = b"GET /v1/docs HTTP/1.1\r\nhost: x\r\n\r\n"
        try:
            for _ in range(100):
                deaf.send(request)
        except OSError:
            pass
        wait_until(lambda: open_connections(running) == 1, "the connection is there")
        wait_until(lambda: open_connections(running) == 0, "the connection is closed")
        note("connection closed after 30 s")


def test_a_request_that_takes_longer_is_left_alone(
    api: Api, running: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its body comes slowly, within the time that a body has, and a next request follows on the connection."""
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", SHORT)
    monkeypatch.setattr(http_protocol, "IDLE_SECONDS", SHORT)
    body = event_body("slow.body")
    head = request_bytes("POST", "/v1/events", api.headers(("content-length", str(len(body)))))
    with api.connect() as connection:
        connection.sendall(head + body[:-1])
        until = time.monotonic() + 4 * SHORT
        wait_until(lambda: time.monotonic() > until, "the other times are over")
        connection.sendall(body[-1:] + GET_HEALTH)
        wait_until(
            lambda: connection.recv(65536, socket.MSG_PEEK).count(b"HTTP/1.1 ") == 2,
            "both responses are here",
        )
        assert read_answer(connection).status == 202
        assert read_answer(connection).status == 200
    assert running.rows("SELECT 1 FROM events WHERE event_type = 'slow.body'")


def test_many_requests_of_one_connection_are_answered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch, "HEAD_SECONDS")
    with api.connect() as connection:
        began, statuses = time.monotonic(), set[int]()
        while time.monotonic() < began + 3 * SHORT:
            connection.sendall(GET_HEALTH)
            statuses.add(read_answer(connection).status)
        assert statuses == {200}


@contextmanager
def connections_from(api: Api, address: str, number: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", api.port), 20, source_address=(address, 0))
            )
            for _ in range(number)
        ]


def answer_to(api: Api, address: str) -> Answer:
    with connections_from(api, address, 1) as (connection,):
        connection.sendall(GET_HEALTH)
        return read_answer(connection)


@pytest.mark.hostile("Clients")
def test_more_connections_than_one_address_may_have(
    api: Api, running: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_table, "MAX_PER_ADDRESS", 5)
    with connections_from(api, "127.0.0.2", 5):
        wait_until(lambda: open_connections(running) == 5, "they are there")
        refused = answer_to(api, "127.0.0.2")
        problem = assert_problem(refused, 503, "too_many_connections")
        assert "connections are short: 127.0.0.2 has 5 open" in problem["detail"]
        assert refused.headers["retry-after"] == "1"
        assert answer_to(api, "127.0.0.3").status == 200
    wait_until(lambda: not open_connections(running), "they are closed")
    assert answer_to(api, "127.0.0.2").status == 200


@pytest.mark.hostile("Clients")
def test_connections_that_would_take_the_last_descriptors(
    api: Api, running: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connections_from(api, "127.0.0.2", 1) as (first,):
        wait_until(lambda: open_connections(running) == 1, "it is there")
        monkeypatch.setattr(connection_table, "descriptor_limit", lambda: 8)
        refused = answer_to_or_none(api)
        monkeypatch.undo()
        first.sendall(GET_HEALTH)
        assert read_answer(first).status == 200, "one that is open goes on"
    assert refused is None, "not even a descriptor for saying so"
    note("503 too_many_connections, or connection closed")


def answer_to_or_none(api: Api) -> Answer | None:
    try:
        return answer_to(api, "127.0.0.2")
    except (ConnectionError, OSError):
        return None


HOSTS = {
    "none": (b"", 400),
    "two": (b"host: a\r\nhost: b\r\n", 400),
    "two that are equal": (b"host: a\r\nHost: a\r\n", 400),
    "a blank in it": (b"host: a b\r\n", 400),
    "a path": (b"host: a/b\r\n", 400),
    "a user": (b"host: u@a\r\n", 400),
    "a port of words": (b"host: a:b\r\n", 400),
    "an open bracket": (b"host: [::1\r\n", 400),
    "a name and a port": (b"host: api.example.com:8080\r\n", 200),
    "an address of IPv6": (b"host: [::1]:8080\r\n", 200),
}


@pytest.mark.hostile("Clients")
@pytest.mark.parametrize("case", HOSTS)
def test_host_header(api: Api, running: RunningSystem, case: str) -> None:
    header, status = HOSTS[case]
    answer = api.send(b"GET /healthz HTTP/1.1\r\n" + header + b"\r\n")
    assert answer.status == status
    if status == 400:
        assert_problem(answer, 400, "invalid_host")
        body = event_body("host.test")
        head = (
            f"POST /v1/events HTTP/1.1\r\nauthorization: Bearer {api.key}\r\ncontent-length: {len(body)}\r\n"
        )
        with running.nothing_stored():
            assert api.send(head.encode() + header + b"\r\n" + body).status == 400


def test_http_1_0_needs_no_host_header(api: Api) -> None:
    assert api.send(b"GET /healthz HTTP/1.0\r\n\r\n").status == 200


def test_a_malformed_request_is_a_problem(api: Api) -> None:
    assert_problem(api.send(b"GET\r\n\r\n"), 400, "bad_request")
