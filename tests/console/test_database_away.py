"""Pages show no more of a server error than the API; the log has the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hooksaga.console import subscriptions
from hooksaga.core.errors import RowRefused, SchemaMismatch, ValueRefused
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.runtime.telemetry import logger
from tests.api.running_system import RunningSystem, wait_until
from tests.console.pages import Pages

pytestmark = pytest.mark.faults

TELLING = ("psycopg", "socket", "postgres", "127.0.0.1", "/tmp", "connection", "relation", "constraint")
"""Words of the database and its driver; no page says one of them."""


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningSystem]:
    """With a database server of its own, because a test stops it."""
    server = EmbeddedPostgres(folder)  # hooksaga's own would be started again
    system = RunningSystem(folder, database_url=server.start(), max_retry_limit=1)
    yield system
    system.stop()
    server.stop()


@pytest.fixture
def away(running: RunningSystem, folder: Path) -> Iterator[None]:
    """The database is stopped for the time of one test."""
    server = EmbeddedPostgres(folder)
    server.stop()
    yield
    server.start()
    running.reconnect()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the log entries of failed requests, with the error as `fault`."""
    lines: list[dict[str, Any]] = []

    def note(text: str, *, exc_info: object = None, extra: dict[str, Any] | None = None, **_: Any) -> None:
        if text == "request failed":
            lines.append({**(extra or {}), "fault": exc_info})

    monkeypatch.setattr(logger, "error", note)
    return lines


def assert_tells_nothing(text: str) -> None:
    assert [word for word in TELLING if word in text] == []


def test_without_a_database_the_sign_in_tells_nothing_of_it_and_a_line_is_logged(
    running: RunningSystem, away: None, logged: list[dict[str, Any]]
) -> None:
    pages = Pages(running.port)
    for answers in (2, 4):  # a connection that is known to be broken, and then none at all
        with_key = pages.post_raw("/console/sign-in", {"key": running.key}, origin=pages.origin)
        with_link = pages.get("/console/sign-in?token=one")
        for answer in (with_key, with_link):
            assert answer.status == 503
            assert "The database is unavailable" in answer.text
            assert_tells_nothing(answer.text)
        wait_until(
            lambda: bool(logged) and logged[-1]["request_id"] in with_link.text,  # noqa: B023
            "the last answer has its line",
        )
        assert sum(line["count"] for line in logged) >= answers
        assert {line["code"] for line in logged} == {"database_unavailable"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SchemaMismatch('relation "subscriptions" does not exist'), 503),
        (RowRefused('duplicate key value violates unique constraint "subscriptions_pkey"'), 503),
        (ValueRefused('new row violates check constraint "a_name"'), 422),
    ],
)
def test_the_databases_own_words_are_on_no_page(
    running: RunningSystem,
    monkeypatch: pytest.MonkeyPatch,
    logged: list[dict[str, Any]],
    error: Exception,
    status: int,
) -> None:
    async def refuse(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(subscriptions, "create_for", refuse)
    pages = Pages(running.port).signed_in(running.key)
    fields = {"event_types": "a.b", "callback_url": "https://127.0.0.1/typed"}
    answer = pages.post("/console/subscriptions", **fields)
    assert answer.status == status
    assert_tells_nothing(answer.text)
    assert [line["fault"] for line in logged] == ([error] if status >= 500 else [])
    if status == 422:
        assert "the database rejects one of the values" in answer.text
        assert "https://127.0.0.1/typed" in answer.body
