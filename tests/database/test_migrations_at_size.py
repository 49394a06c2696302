"""Each migration beside load and a reader, on large tables: it holds no lock for longer than a second, and nobody waits
for longer than one of its waits for a lock. Twenty thousand rows in `make test`, a million in `make test-long`."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.migration_lock import LOCK_SECONDS
from hooksaga.adapters.migrations import SQL_DIR, migrate
from tests.database.a_million_rows import fill
from tests.database.later import first_schema, plant
from tests.database.migration_rules import BAD, GOOD, LARGE, named
from tests.database.producing import Producer

pytestmark = [pytest.mark.database, pytest.mark.slow, pytest.mark.timeout(900)]

MILLION = 1_000_000
HELD_SECONDS = 1.0
"""For how long a migration may hold a lock that blocks writers of a large table."""

SLACK_SECONDS = 1.5
"""What a slow machine may add to a wait."""

READ_SECONDS = 0.7
"""For how long the reader keeps each of its transactions open."""

UPDATE: LiteralString = """
    UPDATE webhook_delivery_jobs SET dispatched_at = now() WHERE id = (
        SELECT id FROM webhook_delivery_jobs WHERE status = 'Pending' AND id > random() * 20000 ORDER BY id LIMIT 1)"""

HELD: LiteralString = """
    SELECT DISTINCT c.relname::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
      JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.granted AND l.locktype = 'relation' AND c.relname = ANY (%s) AND a.application_name = 'hooksaga owner'
       AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"""


def rows(count: int) -> list[LiteralString]:
    number: LiteralString = str(count)  # pyright: ignore[reportAssignmentType]
    return [
        "INSERT INTO subscriptions (event_types, callback_url) SELECT '{a}', 'https://receiver.example/'",
        f"""INSERT INTO events (event_type, payload, external_id)
            SELECT 'a', json_build_object('n', n, 'text', repeat('x', 300)), 'key-' || n
              FROM generate_series(1, {number}) AS n""",
        "INSERT INTO routing_outbox (event_id, created_at) SELECT id, created_at FROM events",
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id) SELECT id, 1 FROM events",
        """INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)
           SELECT id, 1, 1, now() FROM webhook_delivery_sagas""",
        """INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code,
                                     payload_snapshot)
           SELECT id, event_id, 1, 'default', 'a', 'http_500', '{}' FROM webhook_delivery_sagas""",
    ]


class Observer(threading.Thread):
    """Looks a hundred times a second for how long a migration holds a lock that blocks writers of a large table."""

    def __init__(self, address: DatabaseAddress) -> None:
        super().__init__()
        self.longest = 0.0
        self._conninfo = address.url
        self._stopping = threading.Event()

    def run(self) -> None:
        since: dict[str, float] = {}
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            while not self._stopping.wait(0.01):
                now = time.monotonic()
                held = {table for (table,) in connection.execute(HELD, [list(LARGE)]).fetchall()}
                since = {table: since.get(table, now) for table in held}
                self.longest = max([self.longest, *(now - begun for begun in since.values())])

    def __enter__(self) -> "Observer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()


class Reader(Observer):
    """Reads all large tables in one transaction after the other."""

    def run(self) -> None:
        with psycopg.connect(self._conninfo, application_name="report") as connection:
            while not self._stopping.wait(0.01):
                for table in LARGE:
                    connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(table)))
                self._stopping.wait(READ_SECONDS)
                connection.rollback()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(20_000, id="twenty thousand rows"),
        pytest.param(MILLION, id="a million rows", marks=pytest.mark.long),
    ],
)
def size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_schema(tmp_path_factory.mktemp("at_size"))


@pytest.fixture(scope="module")
def filled(
    test_server: str, maintenance: psycopg.Connection, size: int, folder: Path
) -> Iterator[DatabaseAddress]:
    """The first schema with this many rows in each large table, and all planted migrations that are good."""
    maintenance.execute("CREATE DATABASE at_size")
    address = DatabaseAddress(make_conninfo(test_server, dbname="at_size"))
    migrate(address, folder)
    with psycopg.connect(address.url, autocommit=True) as connection:
        fill(connection, rows(size))
    yield address
    maintenance.execute("DROP DATABASE at_size WITH (FORCE)")


def longest_beside_load(address: DatabaseAddress, files: Path) -> tuple[list[str], float, float]:
    """Run the migrations. Returns their names, the longest hold of a lock, and the longest wait of a statement."""
    producer = Producer(address)
    worker = Producer(address, UPDATE, Role.OWNER)
    observer = Observer(address)
    with producer, worker, Reader(address), observer:
        done = migrate(address, files)
    assert min(producer.inserted, worker.inserted) > 0
    return done, observer.longest, max(producer.longest, worker.longest)


def test_the_migrations_of_this_version_and_planted_ones_stop_nobody(
    filled: DatabaseAddress, folder: Path, size: int
) -> None:
    whole = plant(folder, **named(GOOD, 9001))
    for path in (SQL_DIR / "migrations").glob("*.sql"):
        (whole / "migrations" / path.name).write_bytes(path.read_bytes())
    done, held, waited = longest_beside_load(filled, whole)
    assert len(done) == len(list((whole / "migrations").glob("*.sql"))) >= len(GOOD)
    assert held < HELD_SECONDS
    assert waited < LOCK_SECONDS + SLACK_SECONDS
    with psycopg.connect(filled.url) as connection:
        assert connection.execute("SELECT count(*) FROM webhook_delivery_jobs").fetchone() == (size,)


@pytest.mark.long
@pytest.mark.parametrize("size", [MILLION], indirect=True, ids=["a million rows"])
@pytest.mark.parametrize("name", ["a volatile default", "an index in a transaction"])
def test_a_planted_migration_that_holds_a_lock_is_caught(
    filled: DatabaseAddress, folder: Path, name: str
) -> None:
    _, held, _ = longest_beside_load(filled, plant(folder, **named({name: BAD[name][0]}, 9500 + len(name))))
    assert held > HELD_SECONDS
