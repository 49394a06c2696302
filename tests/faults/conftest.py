"""A data folder for each test, gone at its end."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-faults-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
