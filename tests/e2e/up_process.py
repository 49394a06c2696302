"""`hooksaga up` as a process that can be killed, with its logs in files."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
from psycopg.rows import dict_row

from hooksaga.local import api_process
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from tests.api.http_client import Api
from tests.api.running_system import wait_until

KEY = "hs_a-key-of-the-tests-0123456789"


class UpProcess:
    """One data folder and one port over any number of starts. Stop with `close`, which ends the database too."""

    def __init__(
        self, folder: Path, certificates: Certificates, *, prefix: Sequence[str] = (), **variables: str
    ) -> None:
        """prefix: a command that runs the one behind it."""
        self.folder = folder
        self._prefix = prefix
        self.log = folder / "up.log"
        self.said = folder / "up.out"
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self.api = Api(self.port, KEY)
        self.server = EmbeddedPostgres(folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOOKSAGA_")}
        self._environment = {
            **kept,
            "HOOKSAGA_DATA_DIR": str(folder),
            "HOOKSAGA_API_KEY": KEY,
            "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
            "HOOKSAGA_CA_FILE": str(certificates.ca),
            "HOOKSAGA_RETRY_JITTER": "0",
            "HOOKSAGA_BREAKER_FAILURES": "1000",
            "HOOKSAGA_BASE_DELAY_SECONDS": "0.2",
            "HOOKSAGA_LOG_LEVEL": "DEBUG",
            **variables,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._database: psycopg.Connection | None = None

    def spawn(self) -> None:
        """Start, without waiting for anything."""
        command = [*self._prefix, sys.executable, "-m", "hooksaga.cli.app", "up", "--port", str(self.port)]
        with self.log.open("ab") as log, self.said.open("ab") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    def start(self) -> None:
        self.spawn()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready, "the process is ready", 60)

    def is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-3000:]
        try:
            return self.api.get("/healthz").status == 200
        except OSError:
            return False

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def processes(self) -> list[psutil.Process]:
        """The process, and that of its API if it has one; without those of the database."""
        process = psutil.Process(self.pid)
        return [process, *(one for one in process.children() if api_process.PROGRAM in one.cmdline())]

    def kill(self) -> None:
        """SIGKILL to the whole process group. The database has a group of its own and lives on."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.wait(10) == -signal.SIGKILL

    def terminate(self) -> int:
        """SIGTERM, and the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(45)

    def kill_database(self) -> None:
        """SIGKILL to this folder's database server, if it has one."""
        try:
            number = int((self.folder / "postgres" / "postmaster.pid").read_text().split()[0])
            process = psutil.Process(number)
        except (FileNotFoundError, IndexError, psutil.NoSuchProcess):
            return
        if process.name().startswith("postgres") and str(self.folder) in " ".join(process.cmdline()):
            process.kill()

    def close(self) -> None:
        if self.is_alive:
            self.kill()
        if self._database is not None:
            self._database.close()
        self.server.stop()

    def database(self) -> psycopg.Connection:
        """A superuser's connection, kept for the next caller: tests ask many times a second. Starts the server if
        it does not run."""
        if self._database is None or self._database.closed or not self._answers(self._database):
            self._database = psycopg.connect(self.server.start(), autocommit=True)
        return self._database

    @staticmethod
    def _answers(database: psycopg.Connection) -> bool:
        try:
            database.execute("SELECT")
        except psycopg.OperationalError:
            database.close()
        return not database.closed

    def rows(self, query: LiteralString, params: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The answer to a superuser's query."""
        return self.database().cursor(row_factory=dict_row).execute(query, params).fetchall()

    def end_leases_of_dead_workers(self) -> int:
        """Expire all leases except those of the present process; return their number."""
        return self._end_leases("worker_id NOT LIKE %s", f"%:{self.pid}:%" if self.is_alive else "")

    def end_leases_older_than(self, seconds: float) -> int:
        """Expire leases of this age; return their number."""
        return self._end_leases("leased_at < now() - make_interval(secs => %s)", seconds)

    def _end_leases(self, which: LiteralString, param: object) -> int:
        """The guards of the database refuse this to everybody, so it is done past them."""
        database = self.database()
        with database.transaction():
            database.execute("SET LOCAL session_replication_role = replica")
            return database.execute(
                "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 second' "
                f"WHERE status = 'Leased' AND {which}",
                [param],
            ).rowcount


def pause_until(moment: float) -> None:
    """For faults that have to strike at a random time."""
    time.sleep(max(0.0, moment - time.monotonic()))
