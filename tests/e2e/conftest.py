"""One system and one TLS receiver for each module."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import Certificates, ensure_certificates
from tests.api.running_system import RunningSystem
from tests.e2e.recorder import Recorder
from tests.e2e.world import World


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "e2e" in item.path.parts:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def certificates() -> Iterator[Certificates]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-tls-"))
    yield ensure_certificates(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def recorder(certificates: Certificates) -> Iterator[Recorder]:
    recorder = Recorder(certificates)
    yield recorder
    recorder.close()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-e2e-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    """Settings that a module may override."""
    return {}


@pytest.fixture(scope="module")
def world(
    module_database: str,
    folder: Path,
    recorder: Recorder,
    certificates: Certificates,
    settings: dict[str, object],
) -> Iterator[World]:
    """Short waits: three attempts, a fifth of a second between the first two, one second for each POST."""
    short = {
        "base_delay_seconds": 0.2,
        "max_retry_limit": 3,
        "http_timeout_seconds": 1,
        "http_connect_timeout_seconds": 1,
    }
    running = RunningSystem(
        folder, database_url=module_database, ca_file=certificates.ca, **{**short, **settings}
    )
    world = World(running, recorder)
    yield world
    try:
        world.assert_audit_finds_nothing()
    finally:
        recorder.stop()  # cuts what hangs, so that the system need not wait for it
        running.stop()
