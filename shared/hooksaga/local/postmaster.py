"""State of a PostgreSQL server, read from disk and the process table without a connection."""

import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ON_WINDOWS = sys.platform == "win32"

KILL_ORPHANS_AFTER_SECONDS = 5.0
"""The same time as in PostgreSQL itself."""


@dataclass(frozen=True)
class Postmaster:
    """The relevant lines of `postmaster.pid`; a starting server has not written all of them yet."""

    pid: int
    port: str
    socket_dir: str
    status: str

    @classmethod
    def read(cls, folder: Path) -> "Postmaster | None":
        """Read the file; None if it is missing or incomplete."""
        try:
            lines = (folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        lines += [""] * (8 - len(lines))
        pid, port, socket_dir, status = (lines[i].strip() for i in (0, 3, 4, 7))
        return cls(int(pid), port, socket_dir, status) if pid.isdecimal() else None

    def is_alive_on(self, folder: Path) -> bool:
        """Return False for a dead process, a zombie, and another program that reuses the pid."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and str(folder) in process.cmdline()
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True


def running_on(folder: Path) -> Postmaster | None:
    postmaster = Postmaster.read(folder)
    return postmaster if postmaster is not None and postmaster.is_alive_on(folder) else None


def end_orphans_in(folder: Path, deadline: float) -> int | None:
    """End server processes in the folder whose postmaster was killed, as it would after a crash: at once, and with
    SIGKILL if needed. No new server can start beside them. deadline: of the monotonic clock. Returns the pid of one
    that is left, or None."""
    patience = time.monotonic() + KILL_ORPHANS_AFTER_SECONDS
    while orphans := _orphans_in(folder):
        now = time.monotonic()
        if now > deadline:
            return orphans[0].pid
        for orphan in orphans:
            with suppress(psutil.NoSuchProcess):
                orphan.kill() if now > patience or ON_WINDOWS else orphan.send_signal(signal.SIGQUIT)
        time.sleep(0.05)
    return None


def _orphans_in(folder: Path) -> list[psutil.Process]:
    found = list[psutil.Process]()
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.name().startswith("postgres") and process.cwd() == str(folder):
                found.append(process)
    return found
