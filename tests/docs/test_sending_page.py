"""Every block of code of docs/sending.md runs as it stands, and what it sends is delivered."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooksaga.client import RetryPolicy
from tests.e2e.conftest import certificates, folder, recorder, settings, world
from tests.e2e.world import Subscriber, World

__all__ = ["certificates", "folder", "recorder", "settings", "world"]

pytestmark = pytest.mark.e2e

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sending.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


SEND_ONE, SEND_ASYNC, SEND_BATCH = blocks("python")
(CURL,) = blocks("sh")
INSERT, RIGHTS, REPEAT = blocks("sql")


def test_the_page_has_no_code_that_is_not_tried() -> None:
    assert sorted(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)) == ["python"] * 3 + ["sh"] + ["sql"] * 3


def test_the_page_says_the_limits_of_the_client() -> None:
    usual = RetryPolicy()
    assert f"After {usual.attempts} attempts" in PAGE
    assert f"later than {usual.total_seconds} s after the first" in PAGE
    assert f"after {usual.first_wait_seconds} s, " in PAGE


def run(world: World, *command: str) -> str:
    """Return the output of the command, with the API named as on the page."""
    running = world.running
    access = {"HOOKSAGA_API_URL": f"http://127.0.0.1:{running.port}", "HOOKSAGA_API_KEY": running.key}
    done = subprocess.run(
        command, env={**os.environ, **access}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def subscriber(world: World) -> Subscriber:
    return world.subscribe(event_type="order.created")


def delivered(world: World, subscriber: Subscriber, order: int) -> list[bytes]:
    """The bodies about this order, once everything that was stored before has been delivered."""
    world.pass_a_later_event()
    for event in world.running.rows(
        "SELECT 'evt_' || replace(webhook_id::text, '-', '') AS id FROM events WHERE event_type = 'order.created'"
    ):
        world.ended(event["id"])
    bodies = [arrived.body for arrived in world.recorder.events(subscriber.path)]
    return [body for body in bodies if json.loads(body)["order"] == order]


def test_the_client_sends_one_event(world: World, subscriber: Subscriber) -> None:
    event_id, _day, _time, duplicate = run(world, sys.executable, "-c", SEND_ONE).split()
    assert event_id.startswith("evt_")
    assert duplicate == "False"
    assert run(world, sys.executable, "-c", SEND_ONE).split()[-1] == "True"
    assert delivered(world, subscriber, 1001) == [b'{"order":1001,"total":110}']


def test_the_async_client_sends_events(world: World, subscriber: Subscriber) -> None:
    said = run(world, sys.executable, "-c", SEND_ASYNC).split()
    assert len(set(said)) == 2
    assert delivered(world, subscriber, 1002) == [b'{"order":1002}']
    assert delivered(world, subscriber, 1003) == [b'{"order":1003}']


def test_the_client_sends_batches(world: World) -> None:
    assert run(world, sys.executable, "-c", SEND_BATCH) == ""
    query = "SELECT count(*) AS number FROM events WHERE event_type = 'order.shipped'"
    assert world.running.rows(query) == [{"number": 1200}]


def test_curl_sends_an_event(world: World, subscriber: Subscriber) -> None:
    first, again = (json.loads(run(world, "bash", "-euc", CURL)) for _ in range(2))
    assert again == {**first, "duplicate": True}
    assert delivered(world, subscriber, 1004) == [b'{"order": 1004, "total": 1.10}']


@pytest.fixture(scope="module")
def shop(world: World) -> Iterator[psycopg.Connection]:
    """The application's own connection, with a table of its own. Roles belong to the whole server."""
    owner = world.running.database
    owner.execute(RIGHTS.encode())
    try:
        login = make_conninfo(world.running.database_url, user="shop")
        with psycopg.connect(login, autocommit=True) as connection:
            connection.execute("CREATE TABLE shop.orders (id bigint PRIMARY KEY, total numeric)")
            yield connection
    finally:
        owner.execute("DROP OWNED BY shop CASCADE")
        owner.execute("DROP ROLE shop")


def orders(shop: psycopg.Connection) -> list[Any]:
    return shop.execute("SELECT id FROM shop.orders").fetchall()


def about(order: int, statements: str) -> bytes:
    """The page's statements for an order of one test's own."""
    assert "1001" in statements
    return statements.replace("1001", str(order)).encode()


def test_what_a_producer_commits_is_delivered(
    world: World, subscriber: Subscriber, shop: psycopg.Connection
) -> None:
    shop.execute(about(2001, INSERT))
    assert (2001,) in orders(shop)
    assert delivered(world, subscriber, 2001) == [b'{"order": 2001, "total": 1.10}']


def test_what_a_producer_rolls_back_never_was(
    world: World, subscriber: Subscriber, shop: psycopg.Connection
) -> None:
    assert INSERT.endswith("COMMIT;\n")
    with world.running.nothing_stored():
        shop.execute(about(2002, INSERT.replace("COMMIT;", "ROLLBACK;")))
    assert (2002,) not in orders(shop)
    assert delivered(world, subscriber, 2002) == []


def test_a_producer_that_dies_before_its_commit_sent_nothing(world: World, shop: psycopg.Connection) -> None:
    dying = psycopg.connect(shop.info.dsn, autocommit=True)
    with world.running.nothing_stored():
        dying.execute(about(2003, INSERT.replace("COMMIT;", "")))
        world.running.run("SELECT pg_terminate_backend(%s, 10000)", dying.info.backend_pid)
        with pytest.raises(psycopg.OperationalError):
            dying.execute("COMMIT")
    assert (2003,) not in orders(shop)


def test_a_known_key_is_refused_or_does_nothing_as_the_page_says(
    world: World, subscriber: Subscriber, shop: psycopg.Connection
) -> None:
    shop.execute(about(2004, REPEAT))
    with world.running.nothing_stored():
        shop.execute(about(2004, REPEAT))
        with pytest.raises(psycopg.errors.UniqueViolation, match="uniq_event_external_id"):
            shop.execute(about(2004, INSERT))
        shop.execute("ROLLBACK")
    assert len(delivered(world, subscriber, 2004)) == 1


def test_a_call_of_the_api_with_the_same_key_does_not_wait_for_a_producer(
    world: World, shop: psycopg.Connection
) -> None:
    shop.execute(about(2005, INSERT.replace("COMMIT;", "")))
    try:
        answer = world.api.post_event(
            b'{"event_type": "order.created", "payload": {"order": 2005}}', ("idempotency-key", "order-2005")
        )
        assert answer.status == 202
    finally:
        shop.execute("ROLLBACK")


@pytest.mark.parametrize("column", ["webhook_id", "tenant_id", "traceparent"])
def test_the_other_columns_of_the_page_may_be_given(
    world: World, shop: psycopg.Connection, column: str
) -> None:
    values = {
        "webhook_id": "0190aaaa-0000-7000-8000-000000000001",
        "tenant_id": "acme",
        "traceparent": f"00-{'a' * 32}-{'1' * 16}-01",
    }
    assert f"| `{column}` |" in PAGE
    query = f"INSERT INTO public.events (event_type, payload, {column}) VALUES ('given', '{{}}', %s)"
    shop.execute(query.encode(), [values[column]])
    (row,) = world.running.rows("SELECT * FROM events WHERE event_type = 'given' ORDER BY id DESC LIMIT 1")
    assert str(row[column]) == values[column]


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("SELECT payload FROM public.events", "permission denied for table events"),
        ("SELECT webhook_id FROM public.events", "permission denied for table events"),
        ("SELECT FROM public.routing_outbox", "permission denied for table routing_outbox"),
        ("SELECT FROM public.subscriptions", "permission denied for table subscriptions"),
        (
            "INSERT INTO public.events (event_type, payload) VALUES ('a', '{}') RETURNING id",
            "permission denied",
        ),
        (
            "INSERT INTO public.events (event_type, payload, created_at) VALUES ('a', '1', now())",
            "permission denied",
        ),
        ("UPDATE public.events SET payload = '{}'", "permission denied"),
        ("CREATE TABLE public.mine (id int)", "permission denied for schema public"),
        ("INSERT INTO public.events (event_type, payload) VALUES ('hooksaga.mine', '{}')", "not for shop"),
        (
            "INSERT INTO public.events (event_type, payload) VALUES ('a', '{')",
            "invalid input syntax for type json",
        ),
        ("INSERT INTO public.events (event_type, payload) VALUES ('two words', '{}')", "event_type_is_valid"),
    ],
)
def test_a_producer_may_do_nothing_else(
    world: World, shop: psycopg.Connection, statement: str, refusal: str
) -> None:
    with world.running.nothing_stored(), pytest.raises(psycopg.Error, match=refusal):
        shop.execute(statement.encode())
