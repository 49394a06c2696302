"""Requests that are odd as HTTP: the answer is a problem or a closed connection, and the API lives on."""

import socket

import pytest

from tests.api.http_client import (
    Answer,
    Api,
    assert_problem,
    event_body,
    read_answer,
    request_bytes,
    until_closed,
)
from tests.api.routes import ROUTES
from tests.api.running_system import RunningSystem
from tests.hostile_cases import note, note_answer

pytestmark = pytest.mark.hostile("Clients")


def event_request(api: Api, body: bytes, *headers: tuple[str, str | bytes]) -> bytes:
    length = ("content-length", str(len(body)))
    return request_bytes("POST", "/v1/events", api.headers(length, *headers), body)


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/v1",
        "/v2/events",
        "/v1/events/",
        "/v1/events/a/b",
        "//v1/events",
        "/V1/events",
        "/v1/event",
        "/v1/events%00",
        "/v1/./events/",
        "/v1/../../etc/passwd",
        "/v1/subscriptions/1/verify/",
        "/favicon.ico",
        "/%FF%FE",
        "/" + "x" * 60_000,
        "/docs",
        "/v1/metrics",
        "*",
    ],
)
def test_unknown_route(running: RunningSystem, api: Api, target: str) -> None:
    with running.nothing_stored():
        for method in ("GET", "POST", "DELETE"):
            assert_problem(
                api.call(method, target, event_body("t") if method == "POST" else None),
                404,
                "route_not_found",
            )


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_unknown_method_names_the_known_ones(running: RunningSystem, api: Api, method: str) -> None:
    by_path: dict[str, set[str]] = {"/healthz": {"GET"}, "/metrics": {"GET"}}
    for route in ROUTES:
        by_path.setdefault(route.path, set()).add(route.method)
    with running.nothing_stored():
        for path, methods in by_path.items():
            if method not in methods:
                answer = api.call(method, path.replace("{id}", "1"), b"{}")
                assert_problem(answer, 405, "method_not_allowed")
                assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == methods


def test_head_of_what_can_be_read(api: Api) -> None:
    answer = api.call("HEAD", "/healthz")
    assert (answer.status, answer.body) == (200, b"")


NOT_HTTP = {
    "nonsense": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    "NUL": b"\x00" * 64,
    "no version": b"GET /healthz\r\n\r\n",
    "HTTP/9": b"GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n",
    "blank in name": b"GET /healthz HTTP/1.1\r\nhost: x\r\nbad name: 1\r\n\r\n",
    "no colon": b"GET /healthz HTTP/1.1\r\nhost: x\r\nbad\r\n\r\n",
    "NUL in value": b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: a\x00b\r\n\r\n",
    "bare CR in value": b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: a\rb\r\n\r\n",
    "raw bytes in target": b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
    "two lengths": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}}",
    "length and chunks": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n"
    b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "negative length": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "length in words": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: two\r\n\r\n",
    "endless length": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: " + b"9" * 40 + b"\r\n\r\n",
    "bad chunk size": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n{}\r\n",
    "unknown coding": b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n{}",
}


@pytest.mark.parametrize("data", NOT_HTTP.values(), ids=NOT_HTTP)
def test_what_is_no_http_ends_its_own_connection_only(running: RunningSystem, api: Api, data: bytes) -> None:
    with running.nothing_stored():
        with api.connect() as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = noted_until_closed(connection)
            if answer:
                status = int(answer.split(b" ")[1])
                assert 400 <= status < 500 or (status, data[:4]) == (200, b"GET ")
        assert api.get("/healthz").status == 200


def noted_until_closed(connection: socket.socket) -> bytes:
    received = until_closed(connection)
    note_answer(int(received.split(b" ")[1])) if received else note("connection closed")
    return received


def test_smuggled_second_request_is_not_carried_out(running: RunningSystem, api: Api) -> None:
    inner = event_request(api, event_body("smuggled"))
    chunk = b"0\r\n\r\n" + inner
    outer = request_bytes(
        "POST",
        "/v1/events",
        api.headers(("content-length", str(len(chunk))), ("transfer-encoding", "chunked")),
        chunk,
    )
    with running.nothing_stored(), api.connect() as connection:
        connection.sendall(outer)
        connection.shutdown(socket.SHUT_WR)
        assert b" 20" not in noted_until_closed(connection).split(b"\r\n")[0]


@pytest.mark.parametrize("size", [1_000, 60_000])
def test_long_headers_and_targets_do_no_harm(api: Api, size: int) -> None:
    assert api.post_event(event_body("long"), ("x-long", "x" * size)).status == 202
    assert (
        api.post_event(event_body("long"), *((f"x-{n}", "x" * 50) for n in range(size // 100))).status == 202
    )
    answer = api.get("/v1/subscriptions?event_type=" + "x" * size)
    assert_problem(answer, 422, "invalid_parameter", "event_type")
    answer = api.get(f"/v1/events/evt_{'0' * size}")
    assert_problem(answer, 404, "event_not_found")


def test_slow_client_holds_up_nobody(running: RunningSystem, api: Api) -> None:
    """A request of which every byte comes alone; others are answered between any two of them."""
    body = event_body("slow")
    data = event_request(api, body)
    with api.connect() as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(data) - 1):
            slow.sendall(data[at : at + 1])
            if at % 50 == 0:
                assert api.post_event(event_body("quick")).status == 202
        assert running.rows("SELECT FROM events WHERE event_type = 'slow'") == []
        slow.sendall(data[-1:])
        assert read_answer(slow).status == 202


def test_a_hundred_idle_connections_hold_up_nobody(api: Api) -> None:
    idle = [api.connect() for _ in range(100)]
    try:
        for connection in idle:
            connection.sendall(b"POST /v1/events HTTP/1.1\r\nhost: x\r\n")
        assert api.post_event(event_body("quick")).status == 202
    finally:
        for connection in idle:
            connection.close()


def test_client_that_leaves_before_its_answer_does_no_harm(running: RunningSystem, api: Api) -> None:
    """Its event may be stored or not; a repeat with the key tells."""
    for n in range(20):
        with api.connect() as connection:
            connection.sendall(event_request(api, event_body("gone"), ("idempotency-key", f"gone-{n}")))
    answers = [api.post_event(event_body("gone"), ("idempotency-key", f"gone-{n}")) for n in range(20)]
    assert {answer.status for answer in answers} <= {200, 202}
    assert len(running.rows("SELECT FROM events WHERE event_type = 'gone'")) == 20


def test_one_connection_serves_good_and_bad_requests_in_turn(api: Api) -> None:
    with api.connect() as connection:
        for body, status in (
            (event_body("turn"), 202),
            (b"{", 400),
            (event_body("turn"), 202),
            (b"\xff", 400),
            (event_body("turn", b"[" * 64 + b"]" * 64), 400),
            (event_body(""), 422),
            (event_body("turn"), 202),
        ):
            connection.sendall(event_request(api, body))
            assert read_answer(connection).status == status


def test_expect_continue_is_answered(api: Api) -> None:
    body = event_body("expect")
    with api.connect() as connection:
        head = event_request(api, body, ("expect", "100-continue"))[: -len(body)]
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert read_answer(connection).status == 202


def test_upgrades_are_not_taken(api: Api) -> None:
    answer = api.call(
        "GET",
        "/healthz",
        None,
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "x"),
        ("sec-websocket-version", "13"),
    )
    assert answer.status == 200


def test_answers_say_nothing_of_the_server_and_request_ids_differ(api: Api) -> None:
    answers: list[Answer] = [api.get("/nowhere"), api.post_event(b"{"), api.get("/v1/stats?x=1")]
    assert all("server" not in answer.headers for answer in answers)
    ids = [answer.json()["request_id"] for answer in answers[:2]]
    assert len(set(ids)) == 2
    given = api.call("GET", "/nowhere", None, ("x-request-id", "mine"))
    assert "mine" not in given.json()["request_id"]


def test_old_http_is_served_too(api: Api) -> None:
    answer = api.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.status == 200
