"""The API on a real port, before a real database; one system for each module."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.http_client import Api
from tests.api.running_system import RunningSystem


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-api-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def running(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    system = RunningSystem(folder, database_url=module_database, max_retry_limit=1)
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
