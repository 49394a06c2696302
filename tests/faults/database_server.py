"""A PostgreSQL server as its operator handles it: stopped in every mode, followed by a standby, out of disk."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote

import psycopg

from hooksaga.local import postgres_build
from hooksaga.local.database_account import account_of
from tests.faults.wire import SOCKET

SECONDS = 60
ACCOUNT = account_of(Path(tempfile.gettempdir()))
"""What the servers of tests run as: their folders are new ones."""


class DatabaseServer:
    """The server of one PostgreSQL folder, which `EmbeddedPostgres` has made or `follow` has copied."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "server.log"

    @property
    def socket(self) -> Path:
        return self.folder / SOCKET

    @property
    def url(self) -> str:
        """A superuser's, past every proxy."""
        return f"postgresql://postgres@/hooksaga?host={quote(str(self.folder), safe='/')}&port=5432"

    def run(self, *statements: LiteralString) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True, application_name="rival")

    def stop(self, mode: str = "fast") -> None:
        self._pg_ctl("stop", "-m", mode)

    def start(self) -> None:
        """Waits for the end of crash recovery, or until a standby can be read."""
        place = f"-c unix_socket_directories='{self.folder}'"
        self._pg_ctl("start", "-l", str(self._log), "-o", place)

    def promote(self) -> None:
        self._pg_ctl("promote")

    def is_up(self) -> bool:
        host = str(self.folder)
        return _program("pg_isready", "-h", host, "-p", "5432", "-t", "2", check=False).returncode == 0

    def _pg_ctl(self, action: str, *options: str) -> None:
        _program("pg_ctl", action, "-w", "-t", str(SECONDS), "-D", str(self.folder), *options)

    def follow(self, folder: Path) -> "DatabaseServer":
        """A running standby, in step: from now on a commit waits for it."""
        folder.mkdir(mode=0o700)
        ACCOUNT.give(folder)
        source = ("-h", str(self.folder), "-p", "5432", "-U", "postgres")
        _program("pg_basebackup", *source, "-D", str(folder), "-R", "-c", "fast")
        standby = DatabaseServer(folder)
        for copied in ("server.log", f"{SOCKET}.lock"):
            (folder / copied).unlink(missing_ok=True)
        standby.start()
        self.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        return standby

    def log_size(self) -> int:
        return self._log.stat().st_size

    def log_since(self, position: int) -> str:
        with self._log.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")


def _program(name: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """Its output goes to a file: the server inherits it, and would keep a pipe open."""
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(postgres_build.binaries() / name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            start_new_session=True,
            timeout=SECONDS + 30,
            check=False,
            **ACCOUNT.run_options(),
        )
        output.seek(0)
        assert not check or done.returncode == 0, (name, arguments, output.read().decode(errors="replace"))
    return done


class NoMount(Exception):
    """Only root may mount, and not in every container."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of that size, which the server may write to. Raises NoMount."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        raise NoMount
    ACCOUNT.give(folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(disk: Path) -> Path:
    """Take all the space that is left. The file that took it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


def move_folder(source: Path, target: Path) -> None:
    """Move what is in a folder of a stopped server, with its owner."""
    target.mkdir(exist_ok=True)
    for entry in list(source.iterdir()):
        shutil.move(entry, target / entry.name)
    for path in [target, *target.rglob("*")]:
        ACCOUNT.give(path)
