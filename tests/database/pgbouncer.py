"""The real PgBouncer between hooksaga and a server, on sockets in a folder of its own."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from hooksaga.adapters.database import Role
from hooksaga.local.database_account import account_of

PORT = 6432
SECONDS = 20
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer here: apt-get install pgbouncer")


class PgBouncer:
    """Leads to the server whose socket is in `server_folder`, as whoever logs in.

    users: the lines of its own list of them; by default every role, without a password.
    settings: further lines of its configuration; auth_type is trust unless they say otherwise.
    """

    def __init__(
        self, folder: Path, server_folder: Path, pool_mode: str, *, users: str = "", **settings: object
    ) -> None:
        self.folder = folder
        self._account = account_of(server_folder.parent)
        folder.mkdir()
        names = ["postgres", *(role.value for role in Role if role is not Role.OWNER)]
        self._write("users.txt", users or "".join(f'"{name}" ""\n' for name in names))
        lines = {
            "listen_addr": "",
            "listen_port": PORT,
            "unix_socket_dir": folder,
            "auth_type": "trust",
            "auth_file": folder / "users.txt",
            "logfile": folder / "pgbouncer.log",
            "pidfile": folder / "pgbouncer.pid",
            "pool_mode": pool_mode,
            **settings,
        }
        text = "".join(f"{name} = {value}\n" for name, value in lines.items())
        self._write("pgbouncer.ini", f"[databases]\n* = host={server_folder} port=5432\n[pgbouncer]\n{text}")
        self._account.give(folder)
        self._process: subprocess.Popen[bytes] | None = None

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        self._account.give(self.folder / name)

    def url(self, database: str = "hooksaga") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='/')}&port={PORT}"

    def start(self) -> "PgBouncer":
        assert PROGRAM is not None
        process = self._process = subprocess.Popen(
            [PROGRAM, "--quiet", str(self.folder / "pgbouncer.ini")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **self._account.run_options(),
        )
        deadline = time.monotonic() + SECONDS
        while not self._answers():
            assert process.poll() is None, (self.folder / "pgbouncer.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self

    def _answers(self) -> bool:
        """Return whether it responds, even if it refuses the login."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.folder / f".s.PGSQL.{PORT}"))
            except OSError:
                return False
        return True

    def stop(self) -> None:
        """At once, as when it is killed: clients and servers are cut off."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS)
            self._process = None
        for left in (f".s.PGSQL.{PORT}", "pgbouncer.pid"):
            (self.folder / left).unlink(missing_ok=True)
