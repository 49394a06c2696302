"""The archives hold the package, all that it reads at run time, and nothing else."""

import tarfile
import zipfile
from pathlib import Path

from tests.wheel.archives import ROOT, only, tracked

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
    wheel = only(archives, "hooksaga-*.whl")
    version = wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in files_of(wheel)} == {"hooksaga", f"hooksaga-{version}.dist-info"}


def test_the_wheel_holds_the_package_and_what_it_reads(archives: Path) -> None:
    """SQL, templates, pages, the functions and the samples of the demo."""
    files = {name for name in files_of(only(archives, "hooksaga-*.whl")) if name.startswith("hooksaga/")}
    expected = {f"hooksaga/{place}{name}" for folder, place in FOLDERS.items() for name in tracked(folder)}
    expected.add("hooksaga/constraints.txt")  # versions of the packages in the functions' bundles
    assert len(expected) > 300
    assert files == expected


def test_the_sdist_holds_what_git_knows(archives: Path) -> None:
    with tarfile.open(only(archives, "hooksaga-*.tar.gz")) as archive:
        files = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert files - {"PKG-INFO"} == tracked(".")


def test_the_wheel_of_the_construct_holds_its_package(archives: Path) -> None:
    wheel = only(archives, "hooksaga_cdk-*.whl")
    version = wheel.name.split("-")[1]
    expected = {f"hooksaga_cdk/{name}" for name in tracked("cdk/hooksaga_cdk")}
    files = files_of(wheel)
    assert "hooksaga_cdk/components/certificates/amazon-rds.pem" in expected
    assert {name for name in files if not name.startswith(f"hooksaga_cdk-{version}.dist-info/")} == expected


def test_the_sdist_of_the_construct_holds_what_git_knows(archives: Path) -> None:
    with tarfile.open(only(archives, "hooksaga_cdk-*.tar.gz")) as archive:
        files = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert files - {"PKG-INFO", ".gitignore"} == tracked("cdk")


def test_both_packages_have_one_version(archives: Path) -> None:
    """The construct needs exactly the version whose files it puts into bundles."""
    versions = {only(archives, f"{name}-*.whl").name.split("-")[1] for name in ("hooksaga", "hooksaga_cdk")}
    (version,) = versions
    with zipfile.ZipFile(only(archives, "hooksaga_cdk-*.whl")) as archive:
        metadata = archive.read(f"hooksaga_cdk-{version}.dist-info/METADATA").decode()
    assert f"Requires-Dist: hooksaga[aws]=={version}" in metadata
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "cdk" / "LICENSE").read_bytes()
