"""A migration that builds an index CONCURRENTLY: beside writers, killed at any moment, resumed by the next run."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.adapters import index_builds
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.core.errors import MigrationFailed
from tests.database.later import plant
from tests.database.pgbouncer import PgBouncer, needs_pgbouncer
from tests.database.producing import INSERT, Producer, in_background, until
from tests.faults.promises import Promise

BUILD = "-- Why, and when CONCURRENTLY is.\nCREATE INDEX CONCURRENTLY idx_event_later ON public.events (source, id);\n"
SLOW_BUILD = "CREATE INDEX CONCURRENTLY idx_event_later ON public.events (slow(id))"
SLOW = """
    CREATE FUNCTION slow(n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_sleep(0.2); RETURN n; END'"""
STATE = """
    SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('public.idx_event_later')),
           EXISTS (SELECT FROM hooksaga_migrations WHERE name = 'm9001_build'),
           (SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND state = 'active' AND query LIKE '% INDEX CONCURRENTLY %'
               AND pid <> pg_backend_pid())"""
PROCESS = """
import sys
from pathlib import Path
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
migrate(DatabaseAddress(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.fixture
def owner(database_address: DatabaseAddress) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        yield connection


def state(owner: psycopg.Connection) -> tuple[bool | None, bool, int]:
    """Whether the index is valid (None: is not there), whether its migration is recorded, and who builds it."""
    row = owner.execute(STATE.encode()).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


@contextmanager
def writing(address: DatabaseAddress) -> Iterator[psycopg.Connection]:
    """A transaction that has written to events, for which a build waits."""
    with psycopg.connect(make_conninfo(address.url, application_name="report")) as connection:
        connection.execute(INSERT)
        yield connection
        connection.rollback()


@pytest.mark.guarantee(
    Promise.DATABASE,
    "an index of a migration is built behind an open transaction: producers never wait for it",
    "events taken all the while",
)
def test_producers_never_wait_for_a_build_that_waits(
    database_address: DatabaseAddress,
    owner: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_builds, "TELL_SECONDS", 0.1)
    plant(tmp_path, m9001_build=BUILD)
    told: list[str] = []
    done: list[str] = []
    with writing(database_address) as writer, Producer(database_address) as producer:
        running = in_background(lambda: done.extend(migrate(database_address, tmp_path, tell=told.append)))
        until(lambda: any(f"pid {writer.info.backend_pid} " in one for one in told))
        begun = producer.inserted
        until(lambda: producer.inserted > begun + 20)
        assert state(owner)[1:] == (False, 1)
        writer.rollback()
        running.join(30)
    assert done == ["m9001_build"]
    assert state(owner) == (True, True, 0)
    assert producer.longest < 1
    waits = next(one for one in told if "waits for older transactions" in one)
    assert "m9001_build builds idx_event_later" in waits
    assert "'report', idle in transaction" in waits


@pytest.mark.guarantee(
    Promise.DATABASE,
    "SIGKILL of `migrate` in the middle of an index build: the next run removes what is left and builds it",
    "a valid index",
)
@pytest.mark.parametrize("moment", ["waiting", "reading the table"])
def test_a_build_that_was_killed_is_built_by_the_next_run(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path, moment: str
) -> None:
    if moment == "reading the table":
        owner.execute(SLOW.encode())
        owner.execute(
            "INSERT INTO events (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, 500)"
        )
    plant(tmp_path, m9001_build=BUILD if moment == "waiting" else SLOW_BUILD)
    with writing(database_address) as writer:
        if moment != "waiting":
            writer.rollback()
        process = subprocess.Popen([sys.executable, "-c", PROCESS, database_address.url, str(tmp_path)])
        until(lambda: state(owner) == (False, False, 1))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        until(lambda: state(owner)[2] == 0)
        assert state(owner) == (False, False, 0)
    plant(tmp_path, m9001_build=BUILD)
    told: list[str] = []
    assert migrate(database_address, tmp_path, tell=told.append) == ["m9001_build"]
    assert told == ["m9001_build: drops the invalid index idx_event_later of an interrupted build"]
    assert state(owner) == (True, True, 0)


def test_an_index_that_is_there_counts_as_built(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    """Killed between the build and its record, or built by hand before."""
    owner.execute("CREATE INDEX idx_event_later ON events (source, id)")
    before = owner.execute("SELECT 'idx_event_later'::regclass::oid").fetchone()
    assert migrate(database_address, plant(tmp_path, m9001_build=BUILD)) == ["m9001_build"]
    assert owner.execute("SELECT 'idx_event_later'::regclass::oid").fetchone() == before


def test_a_unique_index_that_the_rows_refuse_leaves_nothing_behind(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    owner.execute("INSERT INTO events (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, 2)")
    build = BUILD.replace("INDEX CONC", "UNIQUE INDEX CONC").replace("source, id", "event_type")
    with pytest.raises(MigrationFailed, match="m9001_build: could not create unique index"):
        migrate(database_address, plant(tmp_path, m9001_build=build))
    assert state(owner) == (None, False, 0)


def test_a_build_gives_up_in_the_end_and_the_next_run_begins_anew(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    plant(tmp_path, m9001_build=BUILD)
    with writing(database_address) as writer:
        blocked = (
            rf"waited too long for older transactions: pid {writer.info.backend_pid} .*; the next run removes"
        )
        with pytest.raises(MigrationFailed, match=blocked):
            migrate(database_address, tmp_path, patience_seconds=1)
        assert state(owner) == (False, False, 0)
    assert migrate(database_address, tmp_path) == ["m9001_build"]
    assert state(owner) == (True, True, 0)


def test_another_migrate_waits_for_a_build(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    plant(tmp_path, m9001_build=BUILD)
    with writing(database_address) as writer:
        running = in_background(lambda: migrate(database_address, tmp_path))
        until(lambda: state(owner)[2] == 1)
        with pytest.raises(MigrationFailed, match="another `hooksaga migrate` is at work"):
            migrate(database_address, tmp_path, patience_seconds=0)
        writer.rollback()
        running.join(30)
    assert state(owner) == (True, True, 0)


def test_an_index_is_dropped_beside_others(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    drop = "DROP INDEX CONCURRENTLY IF EXISTS public.idx_event_later;"
    plant(tmp_path, m9001_build=BUILD, m9002_drop=drop, m9003_drop=drop)
    assert migrate(database_address, tmp_path) == ["m9001_build", "m9002_drop", "m9003_drop"]
    assert state(owner) == (None, True, 0)


@pytest.mark.parametrize(
    "text",
    [
        BUILD + "GRANT SELECT ON events TO job_worker;",
        BUILD.replace("public.", ""),
        BUILD.replace("idx_event_later ", ""),
        "DROP INDEX CONCURRENTLY public.idx_event_later",
        "REINDEX INDEX CONCURRENTLY public.idx_event_created",
    ],
)
def test_a_file_that_could_not_be_run_again_is_refused(
    database_address: DatabaseAddress, tmp_path: Path, text: str
) -> None:
    with pytest.raises(MigrationFailed, match="m9001_build: a file with CONCURRENTLY contains one statement"):
        migrate(database_address, plant(tmp_path, m9001_build=text))


@needs_pgbouncer
def test_behind_a_pooler_the_next_run_waits_for_a_build_whose_process_was_killed(
    database_address: DatabaseAddress, owner: psycopg.Connection, tmp_path: Path
) -> None:
    """The pooler's session does not notice that its client is gone."""
    parts = conninfo_to_dict(database_address.url)
    owner.execute(SLOW.encode())
    owner.execute("INSERT INTO events (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, 10)")
    plant(tmp_path, m9001_build=SLOW_BUILD)
    with tempfile.TemporaryDirectory(prefix="hooksaga-bouncer-") as folder:
        Path(folder).chmod(0o755)
        bouncer = PgBouncer(Path(folder) / "pgbouncer", Path(str(parts["host"])), "transaction").start()
        try:
            through = DatabaseAddress(bouncer.url(str(parts["dbname"])))
            process = subprocess.Popen([sys.executable, "-c", PROCESS, through.url, str(tmp_path)])
            until(lambda: state(owner) == (False, False, 1))
            os.kill(process.pid, signal.SIGKILL)
            process.wait(10)
            assert migrate(through, tmp_path) == ["m9001_build"]
        finally:
            bouncer.stop()
    assert state(owner) == (True, True, 0)
