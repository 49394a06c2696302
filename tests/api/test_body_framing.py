"""Where a body ends: chunks, lengths that lie, and bodies without end."""

import pytest

from tests.api.http_client import Answer, Api, assert_problem, event_body, read_answer, request_bytes
from tests.api.running_system import RunningSystem
from tests.api.seeding import LIMIT, body_of
from tests.hostile_cases import note

pytestmark = pytest.mark.hostile("Clients")


def chunked(api: Api, *chunks: bytes, last: bytes = b"0\r\n\r\n") -> Answer:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + last
    headers = api.headers(("transfer-encoding", "chunked"), ("content-type", "application/json"))
    return api.send(request_bytes("POST", "/v1/events", headers, body))


def test_chunked_bodies_are_put_together(running: RunningSystem, api: Api) -> None:
    body = event_body("chunked", '{"text":"žluť 😀"}'.encode())
    answer = chunked(api, *(body[at : at + 1] for at in range(len(body))))
    assert answer.status == 202
    assert api.get(f"/v1/events/{answer.json()['id']}").body.endswith(
        '"payload":{"text":"žluť 😀"}}'.encode()
    )
    big = body_of(LIMIT + 1, b"a")
    assert chunked(api, big[:100_000], big[100_000:-3], big[-2:]).status == 202
    with running.nothing_stored():
        assert_problem(chunked(api, big[:200_000], big[200_000:]), 413, "body_too_large")


def test_a_body_without_end_is_not_read_on(running: RunningSystem, api: Api) -> None:
    """The refusal comes while the body is still under way; the client need not have sent it all."""
    with running.nothing_stored(), api.connect() as connection:
        headers = api.headers(("content-length", str(10**12)), ("content-type", "application/json"))
        connection.sendall(request_bytes("POST", "/v1/events", headers, b" " * (LIMIT + 1)))
        assert_problem(read_answer(connection), 413, "body_too_large")


def test_a_cut_body_is_not_taken_for_an_event(running: RunningSystem, api: Api) -> None:
    """The received part is a complete event; the length announced more."""
    body = event_body("cut")
    with running.nothing_stored():
        for header, sent in (
            (("content-length", str(len(body) + 1)), body),
            (("transfer-encoding", "chunked"), b"%x\r\n%s\r\n" % (len(body), body)),
        ):
            with api.connect() as connection:
                connection.sendall(request_bytes("POST", "/v1/events", api.headers(header), sent))
                connection.shutdown(1)
                rest = b"".join(iter(lambda: connection.recv(65536), b""))
                note(rest.split(b" ")[1].decode() if rest else "connection closed")
                assert rest == b"" or b" 400 " in rest.split(b"\r\n")[0]


def test_a_length_longer_than_the_body_ends_before_the_next_request(api: Api) -> None:
    """Two requests on one connection: the second is read where the first ends, not earlier or later."""
    body = event_body("pipelined")
    one = request_bytes("POST", "/v1/events", api.headers(("content-length", str(len(body)))), body)
    with api.connect() as connection:
        connection.sendall(one + one)
        first = read_answer(connection)
    assert first.status == 202
