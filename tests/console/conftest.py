"""The pages on a real port, before a real database; one system for each module."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.api.http_client import Api
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages

_made = 0


@pytest.fixture(scope="module")
def own_database(test_server: str, maintenance: psycopg.Connection) -> Iterator[str]:
    """URL of a migrated, empty database for all tests of one module."""
    global _made
    _made += 1
    name = f"console_{_made}"
    maintenance.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE hooksaga STRATEGY file_copy").format(sql.Identifier(name))
    )
    yield make_conninfo(test_server, dbname=name)
    maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-console-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def running(own_database: str, folder: Path) -> Iterator[RunningSystem]:
    system = RunningSystem(folder, database_url=own_database, max_retry_limit=1)
    yield system
    system.stop()


@pytest.fixture
def api(running: RunningSystem) -> Api:
    """With a key that may do everything for every tenant."""
    return running.api


@pytest.fixture
def pages(running: RunningSystem) -> Pages:
    """A browser that is signed in with that key."""
    return Pages(running.port).signed_in(running.key)
