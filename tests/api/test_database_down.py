"""The database goes away and comes back: callers are told to repeat, and nothing has to be restarted."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.runtime.telemetry import logger
from tests.api.http_client import Answer, Api, assert_problem, event_body
from tests.api.routes import BY_NAME, Route
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.faults.promises import Promise

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningSystem]:
    """With a database server of its own, because these tests stop it."""
    server = EmbeddedPostgres(folder)  # hooksaga's own would be started again
    system = RunningSystem(folder, database_url=server.start(), max_retry_limit=1)
    yield system
    system.stop()
    server.stop()


@pytest.fixture
def server(running: RunningSystem, folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder)
    yield server
    bring_up(running, server)


def bring_up(running: RunningSystem, server: EmbeddedPostgres) -> None:
    server.start()
    if running.database.closed or not is_alive(running.database):
        running.reconnect()


def is_alive(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def assert_away(answer: Answer) -> None:
    problem = assert_problem(answer, 503, "database_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    for word in ("psycopg", "socket", "postgres", "127.0.0.1", "/tmp"):
        assert word not in problem["detail"]


def repeated(call: Callable[[], Answer]) -> Answer:
    """The first answer that does not ask for a repeat; a caller who obeys Retry-After sees the same."""

    def ask() -> Answer | None:
        answer = call()
        return None if answer.status == 503 else answer

    return wait_until(ask, "an answer that is no 503", 30)


@pytest.mark.guarantee(
    Promise.DATABASE, "the server stopped and started: 503 on every route, and back by itself"
)
def test_stopped_database_gives_503_everywhere_and_recovers_by_itself(
    running: RunningSystem, api: Api, server: EmbeddedPostgres
) -> None:
    event_type = new_name("outage")
    before = running.counts()
    server.stop()
    key = ("idempotency-key", event_type)
    for _ in range(2):  # a connection that is known to be broken, and then none at all
        assert_away(api.post_event(event_body(event_type), key))
        assert_away(api.get("/healthz"))
        for route in BY_NAME.values():
            assert_away(api.call(route.method, route.at(1), b"{}"))
    bring_up(running, server)
    assert running.counts() == before
    first = repeated(lambda: api.post_event(event_body(event_type), key))
    assert (first.status, first.json()["duplicate"]) == (202, False)
    assert api.get("/healthz").status == 200
    for route in BY_NAME.values():
        assert repeated(lambda route=route: _call(api, route)).status < 500


def _call(api: Api, route: Route) -> Answer:
    return api.call(route.method, route.at(0), b"{}")


@pytest.mark.guarantee(Promise.DATABASE, "an outage with deliveries waiting")
def test_deliveries_go_on_after_an_outage(
    running: RunningSystem, api: Api, server: EmbeddedPostgres, refusing_url: str
) -> None:
    """Every stage resumes work that was accepted before."""
    event_type = new_name("outage")
    subscription = subscribe(running, api, event_type, refusing_url)
    for n in range(20):
        post(api, event_type, b"%d" % n)
    server.stop()
    bring_up(running, server)
    assert repeated(lambda: api.post_event(event_body(event_type))).status == 202
    assert len(dead_letters(running, subscription["id"], 21)) == 21


@pytest.mark.guarantee(Promise.DATABASE, "every connection cut by the server")
def test_connections_that_are_cut_are_replaced(running: RunningSystem, api: Api) -> None:
    for _ in range(5):
        running.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'hooksaga %%' AND pid <> pg_backend_pid()"
        )
        answer = api.post_event(event_body("cut"))
        assert answer.status == 202 or assert_away(answer) is None
        assert repeated(lambda: api.post_event(event_body("cut"))).status == 202


@pytest.mark.guarantee(Promise.DATABASE, "a primary that became read-only (failover)")
def test_database_that_became_read_only_is_let_go(running: RunningSystem, api: Api) -> None:
    """As after a failover: connections stay open, and every write is refused."""
    settings = ("event_ingest_writer", "subscription_admin")
    post(api, "before")
    try:
        running.run("ALTER ROLE event_ingest_writer SET default_transaction_read_only = on")
        running.run("ALTER ROLE subscription_admin SET default_transaction_read_only = on")
        running.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY (%s)", list(settings)
        )
        wait_until(lambda: api.get("/healthz").status == 200, "reading still works")
        with running.nothing_stored():
            for _ in range(3):
                assert_away(api.post_event(event_body("read.only")))
                wanted = {"event_type": "t", "callback_url": "https://example.com/"}
                assert_away(api.post("/v1/subscriptions", wanted))
    finally:
        running.run("ALTER ROLE event_ingest_writer RESET default_transaction_read_only")
        running.run("ALTER ROLE subscription_admin RESET default_transaction_read_only")
    assert repeated(lambda: api.post_event(event_body("after"))).status == 202
    wanted = {"event_type": "t", "callback_url": "https://example.com/"}
    assert repeated(lambda: api.post("/v1/subscriptions", wanted)).status == 201


@pytest.mark.guarantee(Promise.DATABASE, "a table locked for long")
def test_table_that_is_locked_gives_503_instead_of_hanging(running: RunningSystem, api: Api) -> None:
    """The wait for a lock is bounded; a short bound here, so that the test is quick."""
    running.run("ALTER ROLE event_ingest_writer SET lock_timeout = '200ms'")
    running.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'event_ingest_writer'"
    )
    wait_until(lambda: api.get("/healthz").status == 200, "a new connection")
    try:
        with psycopg.connect(running.database_url) as other:
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            assert_away(api.post_event(event_body("locked")))
            assert api.get("/healthz").status == 200
    finally:
        running.run("ALTER ROLE event_ingest_writer SET lock_timeout = '10s'")
    assert repeated(lambda: api.post_event(event_body("locked"))).status == 202


@pytest.mark.guarantee(
    Promise.DATABASE, "300 calls while the server is away", "one line of the log a second, with their count"
)
def test_a_storm_of_503_is_logged_once_a_second(
    running: RunningSystem, api: Api, server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    written = logger.error

    def note(text: str, *args: Any, **more: Any) -> None:
        if text == "request failed":
            counts.append(more["extra"]["count"])
        written(text, *args, **more)

    monkeypatch.setattr(logger, "error", note)
    server.stop()
    began = time.monotonic()
    for _ in range(300):
        assert_away(api.get("/healthz"))
    wait_until(lambda: sum(counts) >= 300, "every answer is counted")
    assert len(counts) <= 2 + (time.monotonic() - began)
