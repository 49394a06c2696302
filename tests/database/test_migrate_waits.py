"""A migration that has to wait for the locks of others holds nobody up for long, and says who they are."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters import migration_lock
from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.migration_lock import LOCK_SECONDS
from hooksaga.adapters.migrations import migrate
from hooksaga.core.errors import MigrationFailed
from tests.database.later import plant
from tests.database.producing import Producer, in_background, until
from tests.faults.promises import Promise

SLACK_SECONDS = 1.5
"""What a slow machine may add."""


@contextmanager
def holding(address: DatabaseAddress, table: str, user: str = "postgres") -> Iterator[psycopg.Connection]:
    """A session that has read a table in an open transaction."""
    conninfo = make_conninfo(address.url, user=user, application_name="report")
    with psycopg.connect(conninfo) as connection:
        connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))
        yield connection


@pytest.fixture
def files(database_address: DatabaseAddress, tmp_path: Path) -> Path:
    """A migration that needs an exclusive lock on events."""
    return plant(tmp_path, m9001_later="ALTER TABLE events ADD COLUMN later text")


@pytest.mark.guarantee(
    Promise.DATABASE,
    "a migration behind an open transaction: producers wait 2 s at the most, and it goes through later",
    "events taken all the while",
)
def test_producers_go_on_while_a_migration_waits_and_it_is_told_for_whom(
    database_address: DatabaseAddress, files: Path
) -> None:
    told: list[str] = []
    done: list[str] = []
    with holding(database_address, "events") as reader, Producer(database_address) as producer:
        pid = reader.info.backend_pid
        until(lambda: producer.inserted > 10)
        running = in_background(lambda: done.extend(migrate(database_address, files, tell=told.append)))
        until(lambda: len(told) == 1)
        before = producer.inserted
        until(lambda: producer.inserted > before)
        assert done == []
        reader.rollback()
        running.join(30)
    assert done == ["m9001_later"]
    assert producer.longest < LOCK_SECONDS + SLACK_SECONDS
    for words in (
        "m9001_later",
        f"pid {pid}",
        "role postgres",
        "'report'",
        "idle in transaction",
        "open for",
        "trying again",
    ):
        assert words in told[0], told


def test_what_a_migration_waits_for_twice_counts_together(
    database_address: DatabaseAddress, tmp_path: Path
) -> None:
    """It holds the first lock while it waits for the second, so sessions that need the first wait for both."""
    plant(tmp_path, m9001_two="LOCK TABLE subscriptions; LOCK TABLE events")
    told: list[float] = []
    with holding(database_address, "subscriptions") as first, holding(database_address, "events") as second:
        begun = time.monotonic()
        running = in_background(
            lambda: migrate(database_address, tmp_path, tell=lambda _: told.append(time.monotonic() - begun))
        )
        until(lambda: time.monotonic() > begun + 0.75 * LOCK_SECONDS)
        first.rollback()
        until(lambda: len(told) == 1)
        second.rollback()
        running.join(30)
    assert told[0] < 1.6 * LOCK_SECONDS


@pytest.mark.parametrize(
    ("role", "doing"), [("postgres", "idle in transaction"), ("observer", "idle in transaction")]
)
def test_it_gives_up_in_the_end_and_leaves_nothing_behind(
    database_address: DatabaseAddress, files: Path, monkeypatch: pytest.MonkeyPatch, role: str, doing: str
) -> None:
    monkeypatch.setattr(migration_lock, "LOCK_SECONDS", 0.3)
    table = "events" if role == "postgres" else "outbox_age"  # a view of it
    with (
        holding(database_address, table, role) as reader,
        pytest.raises(
            MigrationFailed, match=rf"pid {reader.info.backend_pid} \(role {role}.*{doing}.*timed out"
        ),
    ):
        migrate(database_address, files, patience_seconds=0)
    assert migrate(database_address, files) == ["m9001_later"]


def test_one_migrate_at_a_time_and_the_other_says_so(
    database_address: DatabaseAddress, files: Path, tmp_path: Path
) -> None:
    with psycopg.connect(role_conninfo(database_address, Role.OWNER)) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [migration_lock._KEY])
        with pytest.raises(
            MigrationFailed, match=rf"another .* is at work: pid {other.info.backend_pid} .*'hooksaga owner'"
        ):
            migrate(database_address, files, patience_seconds=0)
    assert migrate(database_address, files) == ["m9001_later"]


def test_a_file_that_is_refused_is_named(database_address: DatabaseAddress, tmp_path: Path) -> None:
    plant(tmp_path, m9001_wrong="ALTER TABLE no_such_table ADD COLUMN a text")
    with pytest.raises(MigrationFailed, match='m9001_wrong: relation "no_such_table" does not exist'):
        migrate(database_address, tmp_path)


def test_a_statement_that_its_own_operator_cancels_is_not_tried_again(
    database_address: DatabaseAddress, tmp_path: Path
) -> None:
    plant(tmp_path, m9001_long="SELECT pg_sleep(60)")
    failed: list[Exception] = []

    def run() -> None:
        try:
            migrate(database_address, tmp_path)
        except MigrationFailed as error:
            failed.append(error)

    running = in_background(run)
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        cancel = (
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event = 'PgSleep'"
        )
        until(lambda: connection.execute(cancel).fetchone() is not None)
    running.join(30)
    assert "user request" in str(failed[0])
