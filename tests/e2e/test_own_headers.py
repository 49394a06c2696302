"""The values of a subscription's own headers reach its receiver, and are read nowhere else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psycopg import sql

from hooksaga.local.tls import Certificates
from tests.api.running_system import RunningSystem
from tests.cli.conftest import runner_with
from tests.console.pages import Pages, portal
from tests.e2e.recorder import Recorder
from tests.e2e.world import Subscriber, World

FIRST, SECOND, CLEAR = "canary-first-4711", "canary-second-4712", "canary-clear-4713"
CANARY = re.compile("canary-(first|second|clear)")


def with_headers(world: World, kind: str = "ok", **more: Any) -> Subscriber:
    return world.subscribe(kind, headers={"x-shop-key": FIRST, "authorization": f"Bearer {SECOND}"}, **more)


def everything_stored(running: RunningSystem) -> Iterator[tuple[str, str]]:
    """Every row of every table, as text."""
    tables = running.rows("SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'public'")
    assert len(tables) > 15
    for name in (table["name"] for table in tables):
        query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name))
        for (row,) in running.database.execute(query).fetchall():
            yield name, row


def test_a_value_arrives_and_is_nowhere_in_the_database(world: World) -> None:
    """Not with the attempt, in no history, and not with the subscription."""
    good, bad = with_headers(world), with_headers(world, "status/500", max_retry_limit=1)
    for subscriber in (good, bad):
        world.ended(world.post(subscriber))
        world.api.good("PATCH", subscriber.target, {"headers": {"x-shop-key": SECOND}})
        world.api.good("PATCH", subscriber.target, {"active": False})
        world.api.good("PATCH", subscriber.target, {"active": True})
        (arrived,) = world.recorder.events(subscriber.path)
        assert arrived.header("x-shop-key") == FIRST
        assert arrived.header("authorization") == f"Bearer {SECOND}"
    (challenge,) = world.recorder.challenges(good.path)
    assert challenge.header("x-shop-key") == FIRST
    rows = list(everything_stored(world.running))
    assert rows
    assert {name for name, row in rows if CANARY.search(row)} == set()


def test_no_answer_page_or_command_shows_a_value(world: World) -> None:
    subscriber = with_headers(world, "status/500", max_retry_limit=1)
    event_id = world.post(subscriber)
    world.ended(event_id)
    (letter,) = world.api.good("GET", f"/v1/dead-letters?subscription_id={subscriber.id}")["items"]
    (attempt,) = world.api.good("GET", f"/v1/attempts?subscription_id={subscriber.id}")["items"]
    paths = [
        "/v1/subscriptions",
        subscriber.target,
        f"{subscriber.target}/health",
        f"{subscriber.target}/stats",
    ]
    paths += [f"/v1/events/{event_id}", f"/v1/dead-letters/{letter['id']}", f"/v1/attempts/{attempt['id']}"]
    texts = [world.api.get(path).body.decode() for path in paths]
    link = world.api.good("POST", "/v1/portal-links", {"tenant_id": "default"})["url"]
    port = world.running.port
    for pages in (Pages(port).signed_in(world.running.key), portal(port, link.partition(str(port))[2])):
        one = f"/subscriptions/{subscriber.id}"
        shown = ["/subscriptions", one, f"{one}/edit", f"/events/{event_id}"]
        shown += [f"/deliveries/{attempt['id']}", f"/dead-letters/{letter['id']}"]
        texts += [pages.page(pages.base + path).text for path in shown]
    run = runner_with({"HOOKSAGA_API_URL": f"http://127.0.0.1:{port}", "HOOKSAGA_API_KEY": world.running.key})
    for command in ("subscriptions show", "subscriptions rotate-secret", "subscriptions update --active"):
        words = command.split()
        result = run(*words[:2], str(subscriber.id), *words[2:])
        assert result.exit_code == 0, result.output
        texts += [result.stdout, result.stderr]
    assert len(texts) == 7 + 12 + 6
    assert [text for text in texts if CANARY.search(text)] == []
    assert sum("x-shop-key" in text for text in texts) >= 8, "their names are shown"


def store_clear(running: RunningSystem, subscriber: Subscriber) -> None:
    """Store plain-text values, as SQL or an earlier version would."""
    stored = json.dumps({"X-Shop-Key": CLEAR})
    running.run("UPDATE subscriptions SET headers = %s::jsonb WHERE id = %s", stored, subscriber.id)


def has_clear(running: RunningSystem) -> bool:
    return any(CLEAR in row for _, row in everything_stored(running))


def test_values_in_clear_are_delivered_and_sealed_at_the_next_start(
    module_database: str, folder: Path, recorder: Recorder, certificates: Certificates
) -> None:
    """And before, by `secrets reseal` or `migrate`: never is a delivery without them."""
    settings: dict[str, Any] = {"database_url": module_database, "ca_file": certificates.ca}
    environment = {"HOOKSAGA_DATABASE_URL": module_database, "HOOKSAGA_DATA_DIR": str(folder)}
    for step in ("secrets reseal", "migrate", "start"):
        running = RunningSystem(folder, **settings)
        try:
            world = World(running, recorder)
            subscriber = world.subscribe()
            store_clear(running, subscriber)
            assert world.ended(world.post(subscriber))["status"] == "Completed"
            assert world.api.good("GET", subscriber.target)["headers"] == {"X-Shop-Key": "***"}
            if step != "start":
                result = runner_with(environment)(*step.split())
                assert result.exit_code == 0, result.output
                assert "1" in result.stdout
                assert not has_clear(running), step
                assert world.ended(world.post(subscriber))["status"] == "Completed"
        finally:
            running.stop()
        running = RunningSystem(folder, **settings)
        try:
            assert not has_clear(running), step
            world = World(running, recorder)
            assert world.ended(world.post(subscriber))["status"] == "Completed"
        finally:
            running.stop()
        arrived = [one.header("x-shop-key") for one in recorder.events(subscriber.path)]
        assert arrived == [CLEAR] * (2 if step == "start" else 3)


def test_a_header_that_no_key_opens_fails_its_own_deliveries_only(world: World) -> None:
    """With a word that leaves them to a requeue once the header is set again; the handshake says what to do."""
    lost, good = with_headers(world, max_retry_limit=1), with_headers(world)
    world.running.run(
        "UPDATE subscriptions SET headers = jsonb_set(headers, '{x-shop-key,sealed}', '\"damaged\"') WHERE id = %s",
        lost.id,
    )
    failed = world.ended(world.post(lost))
    assert (failed["status"], failed["final_error_code"]) == ("DeadLettered", "internal_error")
    assert world.ended(world.post(good))["status"] == "Completed"
    world.api.good("PATCH", lost.target, {"callback_url": world.recorder.url + lost.path + "/new"})
    assert "headers cannot be read" in world.api.post(f"{lost.target}/verify").json()["detail"]
    world.api.good("PATCH", lost.target, {"headers": {"x-shop-key": SECOND}})
    assert world.api.good("POST", f"{lost.target}/verify")["verified"]
    assert world.ended(world.post(lost))["status"] == "Completed"
    arrived = world.recorder.events(lost.path + "/new")
    assert [one.header("x-shop-key") for one in arrived] == [SECOND]
    assert [one.header("authorization") for one in arrived] == [f"Bearer {SECOND}"]
