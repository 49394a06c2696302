"""Trouble of the database's own is never the sender's: 503, a line in the log, and the same event is taken later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import pytest
from psycopg import errors

from hooksaga.api import problem_answers
from hooksaga.runtime.telemetry import logger
from tests.api.http_client import Answer, Api, assert_problem, event_body
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.faults.promises import Promise


@contextmanager
def between(running: RunningSystem, before: LiteralString, after: LiteralString) -> Iterator[None]:
    running.run(before)
    try:
        yield
    finally:
        _run_until_done(running, after)


def _run_until_done(running: RunningSystem, statements: LiteralString) -> None:
    """The loops of the system read the same tables in another order."""
    try:
        running.run(statements)
    except errors.DeadlockDetected:
        _run_until_done(running, statements)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The errors that are logged, with what caused them; none waits to share a line with the next one."""
    lines: list[BaseException] = []
    for shared in (problem_answers._requests, problem_answers._items):
        monkeypatch.setattr(shared, "_seconds", 0)
        monkeypatch.setattr(shared, "_of", {})

    def note(_message: str, *_: Any, exc_info: BaseException | None = None, **__: Any) -> None:
        if exc_info is not None:
            lines.append(exc_info)

    monkeypatch.setattr(logger, "error", note)
    return lines


def words(error: BaseException) -> str:
    """Return the messages of the error and its causes."""
    return str(error) + (f"; {words(error.__cause__)}" if error.__cause__ else "")


def assert_ours(answer: Answer) -> None:
    problem = assert_problem(answer, 503, "database_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    for secret in ("sequence", "constraint", "trigger", "events_", "22"):
        assert secret not in problem["detail"]


def single(api: Api, name: str) -> Answer:
    return api.post_event(event_body(name))


def with_key(api: Api, name: str) -> Answer:
    return api.post_event(event_body(name), ("idempotency-key", name))


def subscription(api: Api, name: str) -> Answer:
    return api.post("/v1/subscriptions", {"event_type": name, "callback_url": "https://example.com/"})


CALLS = [single, with_key, subscription]

TROUBLE: dict[str, tuple[LiteralString, LiteralString, str]] = {
    "no more ids": (
        "SELECT setval('events_id_seq', 9223372036854775807), setval('subscriptions_id_seq', 9223372036854775807)",
        (
            "SELECT setval('events_id_seq', (SELECT coalesce(max(id), 1) FROM events)),"
            " setval('subscriptions_id_seq', (SELECT coalesce(max(id), 1) FROM subscriptions))"
        ),
        "2200H",
    ),
    "ids that are taken": (
        (
            "SELECT setval('events_id_seq', (SELECT coalesce(min(id), 1) FROM events), false),"
            " setval('subscriptions_id_seq', (SELECT coalesce(min(id), 1) FROM subscriptions), false)"
        ),
        (
            "SELECT setval('events_id_seq', (SELECT coalesce(max(id), 1) FROM events)),"
            " setval('subscriptions_id_seq', (SELECT coalesce(max(id), 1) FROM subscriptions))"
        ),
        "_pkey",
    ),
    "a trigger of another's": (
        (
            "CREATE FUNCTION not_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not on a Sunday'; END $$;"
            "CREATE TRIGGER not_now BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION not_now();"
            "CREATE TRIGGER not_now BEFORE INSERT ON subscriptions FOR EACH ROW EXECUTE FUNCTION not_now()"
        ),
        "DROP FUNCTION not_now CASCADE",
        "function not_now",
    ),
    "a column that is gone": (
        "ALTER TABLE events RENAME tenant_id TO tenant; ALTER TABLE subscriptions RENAME tenant_id TO tenant",
        "ALTER TABLE events RENAME tenant TO tenant_id; ALTER TABLE subscriptions RENAME tenant TO tenant_id",
        "does not exist",
    ),
    "a right that was taken away": (
        "REVOKE SELECT ON subscriptions FROM subscription_admin; REVOKE SELECT ON events FROM event_ingest_writer",
        "GRANT SELECT ON subscriptions TO subscription_admin; GRANT SELECT ON events TO event_ingest_writer",
        "permission denied",
    ),
}


@pytest.mark.guarantee(Promise.DATABASE, "trouble of the database's own", "503, logged, and taken later")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_of_the_database_is_not_the_senders(
    running: RunningSystem,
    api: Api,
    logged: list[BaseException],
    call: Callable[[Api, str], Answer],
    trouble: str,
) -> None:
    before, after, reason = TROUBLE[trouble]
    name = new_name("trouble")
    call(api, new_name("before"))  # so that there is a row
    with between(running, before, after), running.nothing_stored():
        assert_ours(call(api, name))
    assert reason in words(logged[-1])
    assert call(api, name).status in (201, 202)


def batch(*payloads: bytes) -> bytes:
    items = b",".join(b'{"event_type":"batch","payload":%s}' % payload for payload in payloads)
    return b'{"items":[' + items + b"]}"


def test_one_event_that_meets_trouble_leaves_its_neighbours_alone(
    running: RunningSystem, api: Api, logged: list[BaseException]
) -> None:
    """A trigger of another's may refuse one event of a batch; a value that is refused is still its sender's."""
    trigger: LiteralString = (
        "CREATE FUNCTION not_two() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.payload::text = '2' THEN RAISE 'not two'; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER not_two BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION not_two();"
        "ALTER TABLE events ADD CONSTRAINT not_three CHECK (payload::text <> '3') NOT VALID"
    )
    undo: LiteralString = "DROP FUNCTION not_two CASCADE; ALTER TABLE events DROP CONSTRAINT not_three"
    with between(running, trigger, undo):
        answer = api.call("POST", "/v1/events/batch", batch(b"1", b"2", b"3", b"4"))
    assert answer.status == 200
    first, second, third, fourth = answer.json()["items"]
    assert "id" in first
    assert "id" in fourth
    assert (second["error"]["status"], second["error"]["code"]) == (503, "database_unavailable")
    assert (third["error"]["status"], third["error"]["code"]) == (422, "event_refused")
    assert "not two" not in answer.body.decode()
    assert ["function not_two" in words(error) for error in logged] == [True]


def test_a_batch_whose_events_all_meet_trouble_writes_one_line_a_second(
    running: RunningSystem, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def note(_message: str, *_: Any, extra: dict[str, Any], **__: Any) -> None:
        counts.append(extra["count"])

    monkeypatch.setattr(logger, "error", note)
    monkeypatch.setattr(problem_answers._items, "_of", {})
    monkeypatch.setattr(problem_answers._items, "_seconds", 0.5)
    trigger: LiteralString = (
        "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never'; END $$;"
        "CREATE TRIGGER never BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION never()"
    )
    with between(running, trigger, "DROP FUNCTION never CASCADE"):
        answer = api.call("POST", "/v1/events/batch", batch(*[b"1"] * 50))
    assert {item["error"]["status"] for item in answer.json()["items"]} == {503}
    wait_until(lambda: sum(counts) == 50, "every answer is counted")
    assert counts == [1, 49]
