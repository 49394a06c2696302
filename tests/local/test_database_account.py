"""Changes and messages of a start by root. PostgreSQL itself refuses to run as root."""

import os
import pwd
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hooksaga.local import database_account, postmaster
from hooksaga.local.database_account import NoDatabaseAccount, account_of
from hooksaga.local.postgres import EmbeddedPostgres

pytestmark = [
    pytest.mark.database,
    pytest.mark.skipif(not database_account.is_root(), reason="only root needs another account"),
]

UNNAMED = 54_321
"""A number that no account of this machine has."""


@pytest.fixture
def parent() -> Iterator[Path]:
    """Every account may pass through it."""
    with tempfile.TemporaryDirectory(prefix="hooksaga-test-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def server(parent: Path, told: list[str]) -> Iterator[EmbeddedPostgres]:
    """Its data folder is `data`; `told` gets what it tells."""
    server = EmbeddedPostgres(parent / "data", tell=told.append)
    yield server
    server.stop()


def surroundings(folder: Path) -> dict[str, object]:
    """Owners and modes of the folders around the data and the programs, and the accounts of the machine."""
    programs = Path(sys.prefix)
    around = {folder, *folder.parents, programs, *programs.parents}
    seen: dict[str, object] = {str(one): (one.stat().st_mode, one.stat().st_uid) for one in around}
    return seen | {"accounts": Path("/etc/passwd").read_bytes(), "groups": Path("/etc/group").read_bytes()}


def owner_of_the_process(data_dir: Path) -> int:
    running = postmaster.running_on(data_dir / "postgres")
    assert running is not None
    return psutil.Process(running.pid).uids().effective


def give(folder: Path, uid: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, uid, uid, follow_symlinks=False)


def test_a_start_by_root_changes_its_data_folder_alone_and_tells_why(
    parent: Path, server: EmbeddedPostgres, told: list[str]
) -> None:
    before = surroundings(parent)
    server.start()
    nobody = pwd.getpwnam("nobody").pw_uid
    assert owner_of_the_process(parent / "data") == nobody
    assert surroundings(parent) == before
    data = parent / "data"
    assert stat.S_IMODE(data.stat().st_mode) == 0o701
    assert stat.S_IMODE((data / "postgres").stat().st_mode) == 0o700
    assert told == [
        f"the account nobody may now pass through {data}, but not list it",
        f"PostgreSQL refuses to run as root: it runs as the account nobody, which owns {data}/postgres",
    ]
    server.stop()
    server.start()
    assert told[2:] == told[1:2], "what is done already is not told again"


def test_a_closed_folder_is_named_with_what_to_type_and_left_alone(
    parent: Path, server: EmbeddedPostgres
) -> None:
    parent.chmod(0o700)
    before = surroundings(parent)
    with pytest.raises(NoDatabaseAccount, match=r"refuses to run as root, and the account nobody") as refused:
        server.start()
    assert surroundings(parent) == before
    assert not (parent / "data" / "postgres").exists()
    typed = shlex.split(str(refused.value).splitlines()[-1])
    assert typed == ["chmod", "o+x", str(parent.resolve())]
    subprocess.run(typed, check=True)
    server.start()


def test_the_owner_of_the_data_folder_is_taken(parent: Path, server: EmbeddedPostgres) -> None:
    owner = next(one for one in pwd.getpwall() if one.pw_uid != 0 and one.pw_name != "nobody")
    (parent / "data").mkdir(mode=0o700)
    os.chown(parent / "data", owner.pw_uid, owner.pw_gid)
    server.start()
    assert owner_of_the_process(parent / "data") == owner.pw_uid
    assert stat.S_IMODE((parent / "data").stat().st_mode) == 0o700


def test_a_database_stays_with_its_owner_and_one_of_roots_is_refused(
    parent: Path, server: EmbeddedPostgres
) -> None:
    """A folder that was copied or restored may belong to a number without a name, or to root."""
    server.start()
    server.stop()
    database = parent / "data" / "postgres"
    give(database, UNNAMED)
    server.start()
    assert owner_of_the_process(parent / "data") == UNNAMED
    server.stop()
    give(database, 0)
    with pytest.raises(NoDatabaseAccount, match="belongs to root") as refused:
        server.start()
    subprocess.run(shlex.split(str(refused.value).splitlines()[-1]), check=True)
    server.start()


def test_without_any_account_it_says_how_to_make_one(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_account, "FALLBACK_ACCOUNT", "no-such-account")
    with pytest.raises(NoDatabaseAccount) as refused:
        account_of(parent / "data")
    first, second = (shlex.split(line) for line in str(refused.value).splitlines()[-2:])
    assert first == ["useradd", "--system", "hooksaga"]
    assert second == ["install", "-d", "-o", "hooksaga", "-m", "700", str(parent / "data")]


def test_a_link_that_the_account_left_is_not_written_through(parent: Path, server: EmbeddedPostgres) -> None:
    """Other programs of `nobody` could point a file of root's at something else."""
    server.start()
    server.stop()
    victim = parent / "victim"
    victim.write_text("kept")
    settings = parent / "data" / "postgres" / "hooksaga.conf"
    settings.unlink()
    settings.symlink_to(victim)
    server.start()
    assert victim.read_text() == "kept"
    assert not settings.is_symlink()
