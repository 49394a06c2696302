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
"""PostgreSQL itself waits so long in the same case."""


@dataclass(frozen=True)
class Postmaster:
    """The lines of `postmaster.pid` that matter; a starting server has not written all of them yet."""

    pid: int
    port: str
    socket_dir: str
    status: str

    @classmethod
    def read(cls, folder: Path) -> "Postmaster | None":
        """None when there is no file, or its first line is not written yet."""
        try:
            lines = (folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        lines += [""] * (8 - len(lines))
        pid, port, socket_dir, status = (lines[i].strip() for i in (0, 3, 4, 7))
        return cls(int(pid), port, socket_dir, status) if pid.isdecimal() else None

    def is_alive_on(self, folder: Path) -> bool:
        """False for a dead process, a zombie, and a stranger that got the number of a dead server."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and str(folder) in process.cmdline()
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True


def running_on(folder: Path) -> Postmaster | None:
    """The live server of this data folder."""
    postmaster = Postmaster.read(folder)
    return postmaster if postmaster is not None and postmaster.is_alive_on(folder) else None


def end_orphans_in(folder: Path, deadline: float) -> int | None:
    """End the processes that still work in the folder although their postmaster was killed, as it would have ended
    them after a crash: at once, without a farewell, and by SIGKILL where that does not help. No new server can start
    beside them. The pid of one that runs at the deadline, a moment of the monotonic clock, or None.
    """
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
