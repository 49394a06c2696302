"""What a PostgreSQL server leaves on disk and in the process table, read without asking the server."""

import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

ON_WINDOWS = sys.platform == "win32"


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


def orphan_in(folder: Path) -> int | None:
    """The pid of a server process that still works in the folder, as backends do for a moment after their
    postmaster was killed.
    """
    for process in psutil.process_iter():
        try:
            if process.name().startswith("postgres") and process.cwd() == str(folder):
                return process.pid
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return None
