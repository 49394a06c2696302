"""The data folder holds keys: only its owner may enter, whoever is the first to need something inside."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooksaga.local.private_folder import make_private
from hooksaga.local.system import read_or_create
from hooksaga.local.tls import ensure_certificates


@pytest.fixture
def everybody(tmp_path: Path) -> Iterator[Path]:
    """A folder of a usual user, whose new folders are open to be read."""
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


MAKERS: dict[str, Callable[[Path], object]] = {
    "a folder inside": lambda data: make_private(data / "demo" / "deep"),
    "certificates": ensure_certificates,
    "a key inside": lambda data: read_or_create(data / "demo" / "secrets.key", lambda: "key"),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_data_folder_is_made_for_its_owner_alone(everybody: Path, maker: str) -> None:
    data = everybody / ".hooksaga"
    MAKERS[maker](data)
    assert {mode(folder) for folder in (data, *data.iterdir()) if folder.is_dir()} == {0o700}


def test_what_is_there_keeps_its_mode() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o750)
        make_private(folder / "tls")
        make_private(folder / "tls")
        assert (mode(folder), mode(folder / "tls")) == (0o750, 0o700)
