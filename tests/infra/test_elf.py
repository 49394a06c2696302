"""Shared libraries are cut to what a loader maps, and still load."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga_cdk.elf import strip

MODULE = "multidict._multidict"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    spec = importlib.util.find_spec(MODULE)
    if sys.platform != "linux" or spec is None or spec.origin is None:
        pytest.skip("no ELF library here")
    return Path(shutil.copy(spec.origin, tmp_path))


def test_a_library_loads_without_what_was_cut_off(library: Path) -> None:
    before = library.stat().st_size
    cut = strip(library)
    assert 0 < cut == before - library.stat().st_size
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    subprocess.run([sys.executable, "-c", load, str(library)], check=True)


def test_what_was_cut_once_has_nothing_more_to_cut(library: Path) -> None:
    strip(library)
    content = library.read_bytes()
    assert strip(library) == 0
    assert library.read_bytes() == content


def test_another_kind_of_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "linker-script.so"
    path.write_text("INPUT(libm.so.6)")
    assert strip(path) == 0
    assert path.read_text() == "INPUT(libm.so.6)"


def test_another_name_of_the_same_file_keeps_everything(library: Path, tmp_path: Path) -> None:
    """Installers hard-link: the same bytes may be another installation's, loaded and running."""
    installed = tmp_path / "installed.so"
    installed.hardlink_to(library)
    before = installed.read_bytes()
    assert strip(library) > 0
    assert installed.read_bytes() == before
