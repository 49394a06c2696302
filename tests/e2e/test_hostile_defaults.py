"""The whole way on a server whose defaults others have set for programs of their own, from the first migration on."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.doctor.local import examine_database
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from hooksaga.runtime.settings import read_settings
from tests.api.running_system import RunningSystem
from tests.database.hostile_defaults import DECOYS, HOSTILE, UNMOVED, make_hostile
from tests.e2e.recorder import Recorder
from tests.e2e.world import World, assert_signed

pytestmark = [pytest.mark.e2e, pytest.mark.database]


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    """The roles exist, from another database; hooksaga's own is empty. Everything has other defaults."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-hostile-"))
    server = EmbeddedPostgres(folder)
    try:
        url = make_conninfo(server.start())
        with psycopg.connect(url, autocommit=True, options=UNMOVED) as connection:
            connection.execute("CREATE DATABASE another")
            migrate(DatabaseAddress(make_conninfo(url, dbname="another")))
            make_hostile(connection, "hooksaga")
        yield url
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def world(server_url: str, folder: Path, recorder: Recorder, certificates: Certificates) -> Iterator[World]:
    running = RunningSystem(
        folder,
        database_url=server_url,
        max_retry_limit=2,
        base_delay_seconds=0.2,
        ca_file=certificates.ca,
    )
    running.database.close()
    running.database = psycopg.connect(server_url, autocommit=True, options=UNMOVED)
    yield World(running, recorder)
    running.stop()


def test_the_defaults_are_what_others_get(server_url: str, world: World) -> None:
    """Or these tests would show nothing."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        assert HOSTILE
        for name, value in HOSTILE.items():
            (row,) = connection.execute("SELECT current_setting(%s)", [name])
            assert row[0].replace('"', "") == value, name


def test_the_schema_is_where_it_belongs(world: World) -> None:
    query = "SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'app'::regnamespace AND relkind = 'r'"
    assert {row["name"] for row in world.running.rows(query)} == set(DECOYS)
    assert world.running.rows("SELECT count(*) AS n FROM public.hooksaga_migrations")[0]["n"] > 10


def test_a_delivery_arrives_signed_with_its_bytes_and_times(world: World) -> None:
    payload = b'{"amount": 1.10, "path": "C:\\\\new", "none": null, "text": "\\u00e9 \\\\u0041"}'
    subscriber = world.subscribe(base_delay_seconds=0.123456789)
    assert world.api.good("GET", subscriber.target)["base_delay_seconds"] == 0.123456789
    event_id = world.post(subscriber, payload)
    assert world.ended(event_id)["status"] == "Completed"
    (arrived,) = world.recorder.wait_for(subscriber.path, 1)
    assert arrived.body == payload
    assert_signed(arrived, subscriber.secret)
    event = world.api.good("GET", f"/v1/events/{event_id}")
    assert event["created_at"].endswith("Z")
    assert event["payload"]["path"] == "C:\\new"


def test_a_key_without_a_value_is_none_and_one_with_a_value_is_kept(world: World) -> None:
    """With array_nulls off the two become one: the missing key is the text NULL."""
    subscriber = world.subscribe()
    first, second = world.post(subscriber), world.post(subscriber)
    assert first != second
    assert world.post(subscriber, b"{}", ("idempotency-key", "NULL")) not in (first, second)
    assert world.running.rows("SELECT count(*) AS n FROM public.events WHERE external_id = 'NULL'") == [
        {"n": 1}
    ]


def test_a_dead_letter_is_requeued_and_everything_is_shown(world: World) -> None:
    subscriber = world.subscribe("status/500")
    event_id = world.post(subscriber)
    world.requeue(event_id)
    for route in (
        "/v1/attempts",
        "/v1/dead-letters",
        "/v1/stats",
        "/v1/subscriptions",
        f"/v1/events/{event_id}/routing",
    ):
        world.api.good("GET", route)


def test_every_promise_is_kept(world: World) -> None:
    world.assert_audit_finds_nothing()


async def test_the_doctor_finds_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", world.running.database_url)
    found = {check.name: check.faults async for check in examine_database(read_settings())}
    assert len(found) > 5
    assert {name: faults for name, faults in found.items() if faults} == {}
