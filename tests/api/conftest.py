"""The API on a real port, before a real database; one system for each module."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.api.http_client import Api
from tests.api.running_system import RunningSystem

_made = 0


@pytest.fixture(scope="module")
def own_database(test_server: str, maintenance: psycopg.Connection) -> Iterator[str]:
    """URL of a migrated, empty database for all tests of one module."""
    global _made
    _made += 1
    name = sql.Identifier(f"module_{_made}")
    maintenance.execute(sql.SQL("CREATE DATABASE {} TEMPLATE hooksaga STRATEGY file_copy").format(name))
    yield make_conninfo(test_server, dbname=f"module_{_made}")
    maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-api-"))
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


@pytest.fixture(scope="module")
def refusing_url() -> Iterator[str]:
    """A callback URL whose port is taken and never listens: each delivery is refused at once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{taken.getsockname()[1]}/hook"
