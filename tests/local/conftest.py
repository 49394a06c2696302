"""A data folder, a receiver and a system for a backup under load."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import Certificates, ensure_certificates
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-dumped-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def certificates(folder: Path) -> Certificates:
    return ensure_certificates(folder)


@pytest.fixture
def recorder(certificates: Certificates) -> Iterator[Recorder]:
    recorder = Recorder(certificates)
    yield recorder
    recorder.close()


@pytest.fixture
def up(folder: Path, certificates: Certificates) -> Iterator[UpProcess]:
    process = UpProcess(folder, certificates, HOOKSAGA_BASE_DELAY_SECONDS="20", HOOKSAGA_LOG_LEVEL="WARNING")
    yield process
    process.close()
