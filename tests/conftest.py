"""A real PostgreSQL for every test that asks for one: a server per test process, a fresh database per test.

`database_address` is all that most tests need. `owner` is a superuser's connection, `connect` and
`session_of` log in as one of the roles, `seed` makes rows.
"""

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session, connect_as
from hooksaga.adapters.migrations import migrate
from hooksaga.local import postgres_build
from hooksaga.local.postgres import EmbeddedPostgres, EmbeddedPostgresError
from tests.database.seed import Seed
from tests.faults.promises import IN_FULL
from tests.scheduling import FilesAndInfra, longest_files_first

Connect = Callable[[Role], Awaitable[Connection]]
SessionOf = Callable[[Role], Session]

OTHER_POSTGRES = "HOOKSAGA_TEST_POSTGRES"
"""The folder with the binaries of a server of another version: make test-postgres."""

_FOLDERS = "hooksaga-tests-"
_MEMORY = Path("/dev/shm")
_ROOM_FOR_A_SERVER = 6 * 2**30
_UNSAFE_BUT_FAST = (
    "fsync = off",
    "synchronous_commit = off",
    "full_page_writes = off",
    "autovacuum_naptime = '20d'",
)
_numbers = itertools.count(1)
_copies = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """With several processes, the tests of one file run in one of them: they may share what is costly to make."""
    if other := os.environ.get(OTHER_POSTGRES):
        postgres_build.binaries = lambda: Path(other)
        postgres_build.LOCALE = ("--locale=C.UTF-8",)
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndInfra | None:
    return FilesAndInfra(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "test_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.database)
        if item.get_closest_marker("long") and not IN_FULL:
            item.add_marker(pytest.mark.skip(reason="long: make test-long"))
        if item.get_closest_marker("dist") and "HOOKSAGA_DIST" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="dist: make dist"))
    if hasattr(config, "workerinput"):
        longest_files_first(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thousands of collected tests stay for good: a collection of garbage need not look at them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def test_server() -> Iterator[str]:
    """URL of a server whose database `hooksaga` is migrated and stays empty: the template of all others."""
    _remove_servers_of_killed_tests()
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDERS}{os.getpid()}-", dir=_fastest_folder()))
    server = EmbeddedPostgres(folder)
    try:
        url = server.start()
        migrate(DatabaseAddress(url))
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in _UNSAFE_BUT_FAST:
                connection.execute(sql.SQL("ALTER SYSTEM SET {}").format(sql.SQL(setting)))
            connection.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _fastest_folder() -> Path:
    """Memory, where there is plenty: a database is hundreds of files, and a disk makes them far slower."""
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_FOR_A_SERVER:
        return _MEMORY
    return Path(tempfile.gettempdir())


def _remove_servers_of_killed_tests() -> None:
    """A test process that is killed leaves its server running. Others may remove it at the same time."""
    for folder in _fastest_folder().glob(f"{_FOLDERS}*"):
        if not psutil.pid_exists(int(folder.name.removeprefix(_FOLDERS).split("-")[0])):
            with suppress(OSError, EmbeddedPostgresError):
                EmbeddedPostgres(folder).stop()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def maintenance(test_server: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection beside all test databases, to make and drop them."""
    with psycopg.connect(make_conninfo(test_server, dbname="postgres"), autocommit=True) as connection:
        yield connection


@contextmanager
def copy_of(maintenance: psycopg.Connection, template: str) -> Iterator[str]:
    """Name of a new database with what another one has. Nobody may be connected to that."""
    name = f"copy_{next(_copies)}"
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    maintenance.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
    yield name
    maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def module_database(test_server: str, maintenance: psycopg.Connection) -> Iterator[str]:
    """URL of a migrated, empty database for all tests of one module."""
    with copy_of(maintenance, "hooksaga") as name:
        yield make_conninfo(test_server, dbname=name)


@pytest.fixture
def database_address(test_server: str, maintenance: psycopg.Connection) -> Iterator[DatabaseAddress]:
    """A migrated, empty database of this test's own.

    The one before is dropped now: right after its test PostgreSQL would wait 0.1 s for the last connection.
    """
    database = f"test_{(number := next(_numbers))}"
    maintenance.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE hooksaga STRATEGY file_copy").format(sql.Identifier(database))
    )
    yield DatabaseAddress(make_conninfo(test_server, dbname=database))
    before = sql.Identifier(f"test_{number - 1}")
    maintenance.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(before))


@pytest.fixture
async def connect(database_address: DatabaseAddress) -> AsyncIterator[Connect]:
    """Opens an autocommit connection logged in as a role; Role.OWNER is a superuser."""
    opened: list[Connection] = []

    async def open_connection(role: Role) -> Connection:
        opened.append(await connect_as(database_address, role))
        return opened[-1]

    yield open_connection
    for connection in opened:
        await connection.close()


@pytest.fixture
async def session_of(database_address: DatabaseAddress) -> AsyncIterator[SessionOf]:
    """Makes a Session for a role, as the functions use it."""
    made: list[Session] = []

    def make(role: Role) -> Session:
        made.append(Session(database_address, role))
        return made[-1]

    yield make
    for session in made:
        await session.close()


@pytest.fixture
async def owner(connect: Connect) -> Connection:
    """The superuser who owns the tables."""
    return await connect(Role.OWNER)


@pytest.fixture
async def seed(owner: Connection) -> Seed:
    """Makes rows in any state."""
    return Seed(owner)
