"""The doctor finds, by trying, what a server that others manage lacks, and its remedy helps: an owner with few rights,
an owner beside another's roles, settings, and a pooler in front."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.pooler_trial import Pooling, try_pooling
from hooksaga.doctor.check import Check, Health
from hooksaga.doctor.local import examine_database
from hooksaga.doctor.surroundings import (
    MIGRATES,
    POOLER,
    SERVER,
    check_surroundings,
    judge_pooling,
    judge_settings,
)
from hooksaga.local.given_database import run_as
from hooksaga.operations.doctor import read_surroundings
from hooksaga.runtime.settings import read_settings
from tests.database.pgbouncer import PgBouncer, needs_pgbouncer
from tests.local.restored import new_server

ADMIN_OPTION_NEEDED = 160_000
"""Before, CREATEROLE is enough to grant every role."""


async def checks_of(url: str) -> dict[str, Check]:
    found = check_surroundings(DatabaseAddress(url), is_pooled=False)
    return {check.name: check async for check in found}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a superuser on a server without hooksaga's roles."""
    with new_server() as urls:
        yield urls["postgres"]


@contextmanager
def database_of(server: str, name: str, *statements: str) -> Iterator[str]:
    """A new database and a login of this name, after these statements; as the login."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(make_conninfo(server, dbname=name), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    yield make_conninfo(server, user=name, dbname=name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.parametrize(
    ("name", "given", "told", "remedy"),
    [
        ("plain", ("GRANT CREATE ON SCHEMA public TO plain",), "create role", "ALTER ROLE plain CREATEROLE"),
        (
            "creator",
            ("ALTER ROLE creator CREATEROLE",),
            "schema public",
            "GRANT CREATE ON SCHEMA public TO creator",
        ),
    ],
)
async def test_an_owner_that_cannot_migrate_is_told_what_it_lacks(
    server: str, name: str, given: tuple[str, ...], told: str, remedy: str
) -> None:
    with database_of(server, name, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", *given) as url:
        (fault,) = (await checks_of(url))[MIGRATES].faults
        assert told in fault
        assert remedy in fault
        with psycopg.connect(url) as connection:
            assert connection.execute(
                "SELECT count(*) FROM pg_roles WHERE rolname = 'job_worker'"
            ).fetchone() == (0,)


async def test_with_what_it_was_told_the_owner_can_migrate(server: str) -> None:
    given = ("ALTER DATABASE master2 OWNER TO master2", "ALTER ROLE master2 CREATEROLE")
    with database_of(server, "master2", *given) as url:
        assert (await checks_of(url))[MIGRATES].health is Health.OK
        assert await asyncio.to_thread(migrate, DatabaseAddress(url))
        assert (await checks_of(url))[MIGRATES].health is Health.OK


async def test_an_owner_beside_the_roles_of_another(server: str) -> None:
    first = ("ALTER DATABASE first OWNER TO first", "ALTER ROLE first CREATEROLE")
    second = ("ALTER DATABASE second OWNER TO second", "ALTER ROLE second CREATEROLE")
    with new_server() as urls, database_of(urls["postgres"], "first", *first) as url:
        await asyncio.to_thread(migrate, DatabaseAddress(url))
        with database_of(urls["postgres"], "second", *second) as other:
            faults = (await checks_of(other))[MIGRATES].faults
            with psycopg.connect(make_conninfo(url, dbname="first"), autocommit=True) as connection:
                if connection.info.server_version < ADMIN_OPTION_NEEDED:
                    assert faults == []
                    return
                assert "GRANT retention_operator TO second WITH ADMIN OPTION" in faults[0]
                connection.execute("GRANT retention_operator TO second WITH ADMIN OPTION")
            assert (await checks_of(other))[MIGRATES].health is Health.OK
            assert await asyncio.to_thread(migrate, DatabaseAddress(other))


async def test_an_owner_of_none_of_the_tables(database_address: DatabaseAddress) -> None:
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE newcomer LOGIN")
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO newcomer")
        connection.execute("GRANT SELECT ON hooksaga_migrations TO newcomer")
    try:
        url = make_conninfo(database_address.url, user="newcomer")
        (fault,) = (await checks_of(url))[MIGRATES].faults
        assert "must be owner of table" in fault
        assert "REASSIGN OWNED" in fault
    finally:
        with psycopg.connect(database_address.url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY newcomer; DROP ROLE newcomer")


async def test_a_trial_leaves_nothing_behind(database_address: DatabaseAddress) -> None:
    found = await checks_of(database_address.url)
    assert [check.faults for check in found.values()] == [[], []]
    with psycopg.connect(database_address.url) as connection:
        assert connection.execute("SELECT to_regclass('tried_by_doctor')").fetchone() == (None,)


async def test_a_database_in_another_encoding(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0"
        )
    (fault,) = (await checks_of(make_conninfo(server, dbname="latin")))[SERVER].faults
    assert "LATIN1" in fault
    assert "ENCODING 'UTF8'" in fault


@pytest.mark.parametrize(
    ("change", "back", "told"),
    [
        (
            "ALTER DATABASE {} CONNECTION LIMIT 20",
            "ALTER DATABASE {} CONNECTION LIMIT -1",
            "accepts 20 connections",
        ),
        (
            "ALTER ROLE job_worker CONNECTION LIMIT 1",
            "ALTER ROLE job_worker CONNECTION LIMIT -1",
            "job_worker may open 1 connections and needs 4: ALTER ROLE job_worker CONNECTION LIMIT -1",
        ),
    ],
)
async def test_a_setting_that_limits_hooksaga(
    database_address: DatabaseAddress, maintenance: psycopg.Connection, change: str, back: str, told: str
) -> None:
    name = str(conninfo_to_dict(database_address.url)["dbname"])
    maintenance.execute(change.format(name).encode())
    try:
        faults = (await checks_of(database_address.url))[SERVER].faults
    finally:
        maintenance.execute(back.format(name).encode())
    assert len(faults) == 1
    assert told in faults[0]


async def test_a_server_without_vacuum_and_one_whose_collation_has_changed(
    database_address: DatabaseAddress,
) -> None:
    facts: dict[str, Any] = await run_as(database_address, Role.OWNER, read_surroundings)
    assert judge_settings(facts, is_pooled=False).faults == []
    (fault,) = judge_settings({**facts, "off": ["autovacuum"]}, is_pooled=False).faults
    assert "autovacuum is off" in fault
    changed = {**facts, "collation_changed": "2.31 to 2.36"}
    (fault,) = judge_settings(changed, is_pooled=False).faults
    assert "REINDEX DATABASE CONCURRENTLY" in fault
    timed = {**facts, "small_statement_timeout": "1s"}
    assert judge_settings(timed, is_pooled=False).faults == []  # a build states its own
    (fault,) = judge_settings(timed, is_pooled=True).faults
    assert "SET statement_timeout = 0" in fault


# A pooler in front.


@contextmanager
def pooled(address: DatabaseAddress, mode: str) -> Iterator[DatabaseAddress]:
    parts = conninfo_to_dict(address.url)
    with tempfile.TemporaryDirectory(prefix="hooksaga-bouncer-") as folder:
        Path(folder).chmod(0o755)
        bouncer = PgBouncer(Path(folder) / "pgbouncer", Path(str(parts["host"])), mode).start()
        try:
            yield DatabaseAddress(bouncer.url(str(parts["dbname"])))
        finally:
            bouncer.stop()


async def test_without_a_pooler_nothing_is_said(database_address: DatabaseAddress) -> None:
    assert await try_pooling(database_address) == Pooling(False, "", "")


@needs_pgbouncer
@pytest.mark.parametrize(
    ("mode", "prepare", "told"),
    [
        ("transaction", False, ""),
        ("transaction", True, "unset HOOKSAGA_PREPARED_STATEMENTS"),
        ("session", True, ""),
        ("statement", False, "set pool_mode = transaction"),
    ],
)
async def test_a_pooler_is_tried(
    database_address: DatabaseAddress, mode: str, prepare: bool, told: str
) -> None:
    with pooled(database_address, mode) as address:
        pooling = await try_pooling(address)
    assert pooling.is_pooled
    check = judge_pooling(pooling, prepare=prepare)
    assert bool(check.faults) is bool(told), check
    assert not told or told in check.faults[0]


@needs_pgbouncer
async def test_the_doctor_says_that_there_is_a_pooler(
    database_address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pooled(database_address, "transaction") as address:
        monkeypatch.setenv("HOOKSAGA_DATABASE_URL", address.url)
        found = {check.name: check async for check in examine_database(read_settings())}
        assert found[POOLER].seen.startswith("a pooler")
        monkeypatch.setenv("HOOKSAGA_PREPARED_STATEMENTS", "true")
        found = {check.name: check async for check in examine_database(read_settings())}
        assert [name for name, check in found.items() if check.faults] == [POOLER]
