"""A data folder for each test, gone at its end."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.e2e.recorder import Recorder
from tests.faults.machines import Machines


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-faults-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def recorder(folder: Path) -> Iterator[Recorder]:
    recorder = Recorder(ensure_certificates(folder))
    yield recorder
    recorder.close()


@pytest.fixture
def machines(folder: Path) -> Iterator[Machines]:
    machines = Machines(folder)
    yield machines
    machines.close()
