"""The archives hold the package, all that it reads at run time, and nothing else."""

import tarfile
import zipfile
from pathlib import Path

from tests.wheel.archives import only, tracked

FOLDERS = {
    "shared/hooksaga": "",
    "sql": "sql/",
    "functions": "functions/",
    "events-samples": "events-samples/",
}


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_wheel_owns_one_name(archives: Path) -> None:
    wheel = only(archives, "*.whl")
    version = wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in files_of(wheel)} == {"hooksaga", f"hooksaga-{version}.dist-info"}


def test_the_wheel_holds_the_package_and_what_it_reads(archives: Path) -> None:
    """SQL, templates, pages, the functions and the samples of the demo."""
    files = {name for name in files_of(only(archives, "*.whl")) if name.startswith("hooksaga/")}
    expected = {f"hooksaga/{place}{name}" for folder, place in FOLDERS.items() for name in tracked(folder)}
    assert len(expected) > 300
    assert files == expected


def test_the_sdist_holds_what_git_knows(archives: Path) -> None:
    with tarfile.open(only(archives, "*.tar.gz")) as archive:
        files = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert files - {"PKG-INFO"} == tracked(".")
