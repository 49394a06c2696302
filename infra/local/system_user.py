"""PostgreSQL refuses to run as root. Started by root, as in a container, it runs as a system user of its own.

For everyone else, and on Windows, each function here does nothing.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

if sys.platform != "win32":
    import pwd

NAME = "hooksaga"
CREATE_SECONDS = 10.0
ANYONE_MAY_SEARCH = 0o001


class SystemUserError(RuntimeError):
    """There is no user that PostgreSQL could run as. The message says why."""


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `subprocess.run` that choose the user."""

    user: int
    group: int
    extra_groups: list[int]


def is_needed() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def run_options() -> RunOptions:
    """Raises SystemUserError when root has no way to create the user."""
    if sys.platform == "win32" or not is_needed():
        return {}
    entry = _entry()
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def give(path: Path) -> None:
    """Make the system user the owner of one file or folder."""
    if sys.platform != "win32" and is_needed():
        entry = _entry()
        os.chown(path, entry.pw_uid, entry.pw_gid)


def let_through(*paths: Path) -> None:
    """Let the system user reach the paths: their parent folders may be searched by all, but not listed."""
    if not is_needed():
        return
    for parent in {parent for path in paths for parent in path.resolve().parents}:
        mode = parent.stat().st_mode
        if not mode & ANYONE_MAY_SEARCH:
            parent.chmod(mode | ANYONE_MAY_SEARCH)


if sys.platform != "win32":

    def _entry() -> pwd.struct_passwd:
        """Several processes may come here at once, and the password file has one lock: try again."""
        deadline = time.monotonic() + CREATE_SECONDS
        while (entry := _find()) is None:
            output = _create()
            if _find() is None and time.monotonic() > deadline:
                raise SystemUserError(f"Root could not create the user {NAME!r} for PostgreSQL: {output}")
            time.sleep(0.1)
        return entry

    def _find() -> pwd.struct_passwd | None:
        try:
            return pwd.getpwnam(NAME)
        except KeyError:
            return None


def _create() -> str:
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise SystemUserError(
            "PostgreSQL refuses to run as root, and there is no useradd here: use another user"
        )
    args = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", NAME]
    result = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    return result.stderr.strip()
