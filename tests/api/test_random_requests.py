"""Thousands of requests that nobody would write: none may cost a 5xx, and the API must work as before."""

import http.client
import json
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.api.http_client import Api, event_body, read_answer, request_bytes
from tests.api.routes import ROUTES, Route
from tests.api.running_system import RunningSystem, wait_until
from tests.faults.promises import IN_FULL

pytestmark = pytest.mark.hostile("Clients")

REQUESTS = 8_000 if IN_FULL else 2_000
SEEDS = [1, 2, 3, 4]

TEXTS = [
    "",
    " ",
    "a",
    "order.created",
    "\u0000",
    "a\u0000b",
    "😀",
    "\u202e",
    "x" * 101,
    "x" * 5_000,
    "'; DROP TABLE events; --",
    "%s%(id)s",
    "{}",
    "../..",
    "null",
    "https://example.com/",
    "https://127.0.0.1/",
    "http://[",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "1e400",
    "\\ud800",
    "\r\nx-injected: 1",
]
NUMBERS: list[str] = ["0", "-1", "1", "1.5", "1e400", "-0", "9" * 30, "9" * 5_000, "NaN", "1e-400", "01", "5"]
NAMES = [
    "event_type",
    "payload",
    "tenant_id",
    "callback_url",
    "description",
    "active",
    "max_retry_limit",
    "base_delay_seconds",
    "timeout_seconds",
    "headers",
    "max_in_flight",
    "rate_limit",
    "ordered",
    "backlog",
    "ordering_key",
    "attributes",
    "filter",
    "last",
    "subscription_id",
    "error_code",
    "failed_after",
    "failed_before",
    "limit",
    "dry_run",
    "cursor",
    "",
    "\u0000",
    "x",
]
IDS = ["0", "1", "7", "-1", "x", "%00", "evt_" + "0" * 32, "9" * 25, "%FF"]
PARAMETERS = [
    "limit",
    "cursor",
    "event_type",
    "subscription_id",
    "error_code",
    "failed_after",
    "failed_before",
    "status",
]
VALUES = ["", "1", "%00", "x%00", "%FF", "9" * 25, "2026-01-01T00:00:00Z", "%F0%9F%98%80", "%zz"]
LISTS = tuple(route for route in ROUTES if route.method == "GET" and "{id}" not in route.path)
HEADERS: list[tuple[str, bytes]] = [
    ("idempotency-key", b"k"),
    ("idempotency-key", b""),
    ("idempotency-key", b"\xff"),
    ("content-encoding", b"gzip"),
    ("content-encoding", b"identity"),
    ("accept", b"\x80"),
    ("accept-encoding", b"gzip"),
    ("content-type", b"application/cloudevents+json"),
    ("content-type", b"text/html; charset=\xff"),
    ("content-type", b"application/json; charset=utf-8"),
    ("content-type", b";"),
    ("range", b"bytes=0-1"),
    ("if-none-match", b"*"),
    ("cookie", b"a=b"),
    ("origin", b"null"),
    ("x-forwarded-for", b"' OR 1=1"),
    ("x-http-method-override", b"DELETE"),
    ("host", b"evil.example"),
    ("connection", b"close"),
    ("authorization", b"Bearer \xff"),
    ("x", b"y" * 10_000),
]


class Fuzz:
    """Bounded random requests; the same seed gives the same requests."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> str:
        """JSON text, mostly."""
        kind = self.random.randrange(8 if depth < 5 else 5)
        if kind == 0:
            return self.random.choice(NUMBERS)
        if kind <= 2:
            return json.dumps(self.random.choice(TEXTS), ensure_ascii=self.random.random() < 0.5)
        if kind == 3:
            return self.random.choice(["true", "false", "null"])
        if kind == 4:
            return self.random.choice(
                ['"\\ud800"', '"\\u0000"', "[", "}", "", "tru", "'a'", "[" * 70, '"\n"']
            )
        if kind == 5:
            return "[" + ",".join(self.value(depth + 1) for _ in range(self.random.randrange(4))) + "]"
        pairs = (
            f"{json.dumps(self.random.choice(NAMES))}:{self.value(depth + 1)}"
            for _ in range(self.random.randrange(5))
        )
        return "{" + ",".join(pairs) + "}"

    def body(self) -> bytes:
        kind = self.random.randrange(10)
        if kind == 0:
            return self.random.randbytes(self.random.randrange(200))
        if kind <= 2:
            return event_body("fuzz", self.value().encode("utf-8", "surrogatepass"))
        if kind == 3:
            fields = {"event_type": "fuzz", "callback_url": "https://example.com/"}
            name, value = self.random.choice(NAMES), self.value()
            text = json.dumps(fields)[:-1] + f",{json.dumps(name)}:{value}}}"
            return text.encode("utf-8", "surrogatepass")
        body = bytearray(self.value().encode("utf-8", "surrogatepass"))
        if kind == 4 and body:
            body[self.random.randrange(len(body))] = self.random.randrange(256)
        return bytes(body)

    def target(self, route: Route) -> str:
        target = route.at(self.random.choice(IDS))
        if self.random.random() < 0.1:
            target = target[: self.random.randrange(1, len(target) + 1)]
        if self.random.random() < (0.8 if route.method == "GET" else 0.1):
            target += "?" + "&".join(self.parameter() for _ in range(self.random.choice([1, 1, 1, 2, 3])))
        return target

    def parameter(self) -> str:
        names = PARAMETERS if self.random.random() < 0.95 else ["surprise", "%00", ""]
        return f"{self.random.choice(names)}={self.random.choice(VALUES)}"

    def request(self, api: Api) -> bytes:
        route = self.random.choice(ROUTES + LISTS * 3 + ROUTES[:1] * 16)
        method = (
            route.method if self.random.random() < 0.95 else self.random.choice(["PUT", "OPTIONS", "DELETE"])
        )
        target = self.target(route)
        body = self.body()
        more = [self.random.choice(HEADERS) for _ in range(self.random.choice([0, 0, 0, 1, 2]))]
        headers = [*api.headers(("content-length", str(len(body))), ("connection", "close")), *more]
        if self.random.random() < 0.9:
            headers.append(("content-type", "application/json"))
        return request_bytes(method, target, headers, body)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_never_cost_a_5xx(running: RunningSystem, api: Api, seed: int) -> None:
    fuzz = Fuzz(seed)
    statuses: dict[int, int] = {}
    for _ in range(REQUESTS // len(SEEDS)):
        data = fuzz.request(api)
        answer = api.send(data)
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        assert answer.status < 500, (data, answer)
        if answer.status >= 400:
            assert {"code", "request_id", "detail"} <= set(answer.json()), (data, answer)
    assert statuses.get(202, 0) >= 5, "the requests are so wild that none comes to the database"
    assert len(statuses) >= 6, statuses
    assert_works_as_before(running, api)


def test_random_bytes_never_cost_more_than_their_connection(running: RunningSystem, api: Api) -> None:
    """Good requests with a few bytes changed, cut out or put in, anywhere."""
    fuzz = Fuzz(5)
    changes: list[Callable[[bytearray, int], None]] = [
        lambda data, at: data.__setitem__(at, fuzz.random.randrange(256)),
        lambda data, at: data.__delitem__(slice(at, at + fuzz.random.randrange(1, 9))),
        lambda data, at: data.insert(at, fuzz.random.randrange(256)),
    ]
    for _ in range(300):
        body = event_body("bytes", b'{"a": [1, 2.50, "\xc5\xbc\\u0000"]}')
        headers = api.headers(("content-length", str(len(body))), ("connection", "close"))
        data = bytearray(request_bytes("POST", "/v1/events", headers, body))
        for _ in range(fuzz.random.randrange(1, 4)):
            fuzz.random.choice(changes)(data, fuzz.random.randrange(len(data)))
        with api.connect() as connection:
            connection.sendall(data)
            connection.shutdown(1)
            with suppress(OSError, ValueError, http.client.HTTPException):  # hung up without an answer
                assert read_answer(connection).status < 500, bytes(data)
    assert_works_as_before(running, api)


def assert_works_as_before(running: RunningSystem, api: Api) -> None:
    answer = api.post_event(event_body("plain", b'{"plain": 1.0}'))
    assert answer.status == 202
    assert api.get(f"/v1/events/{answer.json()['id']}").body.endswith(b'"payload":{"plain": 1.0}}')
    wait_until(
        lambda: running.rows("SELECT count(*) AS n FROM routing_outbox")[0]["n"] == 0, "every event is routed"
    )
