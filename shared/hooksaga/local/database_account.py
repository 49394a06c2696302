"""The account that runs PostgreSQL. PostgreSQL refuses to run as root, so root uses an existing other account.

For other users, and on Windows, it is the account of this process, and this module changes nothing. Root uses:

1. the owner of the database's folder, if there is a database;
2. the owner of the data folder, if that is an account of this machine other than root;
3. `nobody`.

No account is created, and no permission outside the data folder is changed.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import TypedDict

from hooksaga.local.private_folder import make_private

if sys.platform != "win32":
    import pwd

FALLBACK_ACCOUNT = "nobody"
PROBE_SECONDS = 30


class NoDatabaseAccount(RuntimeError):
    """Root has no account for PostgreSQL. The message gives the reason and a command."""


class RunOptions(TypedDict, total=False):
    """Arguments of `subprocess.run` that select the account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class DatabaseAccount:
    """uid None: the account of this process."""

    name: str = ""
    uid: int | None = None
    gid: int | None = None

    def run_options(self) -> RunOptions:
        if self.uid is None or self.gid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, path: Path) -> None:
        if sys.platform != "win32" and self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def may_traverse(self, folder: Path) -> bool:
        """Return whether the permission bits of a folder let the account pass through it."""
        return bool(folder.stat().st_mode & self.search_bit(folder))

    def search_bit(self, folder: Path) -> int:
        """Return the permission bit of the folder that applies to this account."""
        found = folder.stat()
        if found.st_uid == self.uid:
            return stat.S_IXUSR
        return stat.S_IXGRP if found.st_gid == self.gid else stat.S_IXOTH


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def account_of(data_dir: Path) -> DatabaseAccount:
    """Return the account of the database in this data folder. Raises NoDatabaseAccount if root finds none."""
    if sys.platform == "win32" or not is_root():
        return DatabaseAccount()
    for path in (data_dir / "postgres", data_dir):
        if path.exists() and path.stat().st_uid != 0:
            name = _name_of(path.stat().st_uid)
            if name is not None or path != data_dir:  # only initdb needs a name
                return DatabaseAccount(
                    name or str(path.stat().st_uid), path.stat().st_uid, path.stat().st_gid
                )
    try:
        found = pwd.getpwnam(FALLBACK_ACCOUNT)
    except KeyError:
        raise NoDatabaseAccount(_no_account(data_dir)) from None
    return DatabaseAccount(found.pw_name, found.pw_uid, found.pw_gid)


if sys.platform != "win32":

    def _name_of(uid: int) -> str | None:
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return None


def _no_account(data_dir: Path) -> str:
    return (
        f"PostgreSQL refuses to run as root, and there is no account {FALLBACK_ACCOUNT} here that it could run as.\n"
        f"Run hooksaga as another user, or give the data folder to an account of its own:\n"
        f"  useradd --system hooksaga\n"
        f"  {join(['install', '-d', '-o', 'hooksaga', '-m', '700', str(data_dir)])}"
    )


def print_to_stderr(line: str) -> None:
    sys.stderr.write(f"hooksaga: {line}\n")


def make_data_folder(folder: Path, tell: Callable[[str], None] = print_to_stderr) -> None:
    """Create a data folder and missing parents for their owner alone.

    As root, the database's account may traverse these folders, but not list them; `tell` receives a message about it.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    make_private(folder)
    account = account_of(folder)
    for one in {folder, *missing}:
        if account.uid is not None and not account.may_traverse(one):
            one.chmod(one.stat().st_mode | account.search_bit(one))
            tell(f"the account {account.name} may now pass through {one}, but not list it")


def check_access(account: DatabaseAccount, data_dir: Path, program: Path) -> None:
    """Raise NoDatabaseAccount if the account cannot enter the data folder or run the program."""
    if account.uid is None:
        return
    database = data_dir / "postgres"
    if database.exists() and database.stat().st_uid != account.uid:
        raise NoDatabaseAccount(
            f"PostgreSQL refuses to run as root, and {database} belongs to root. Give it to an account, for "
            f"instance\n  {join(['chown', '-R', f'{account.uid}:{account.gid}', str(database)])}"
        )
    try:
        subprocess.run(  # `cwd` would be entered as root
            ["/bin/sh", "-c", 'cd "$1" && exec "$2" --version', "sh", data_dir, program],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=True,
            **account.run_options(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NoDatabaseAccount(_unreachable_folder(account, (data_dir, program.parent), error)) from error


def _unreachable_folder(account: DatabaseAccount, paths: tuple[Path, ...], error: Exception) -> str:
    folders = {folder for path in paths for folder in (path, *path.parents)}
    closed = sorted(str(folder) for folder in folders if not account.may_traverse(folder))
    said = f"PostgreSQL refuses to run as root, and the account {account.name} that it would run as "
    if not closed:
        return said + f"cannot be used: {error}.\nRun hooksaga as another user than root."
    return (
        said + f"may not pass through {', '.join(closed)}.\n"
        "Run hooksaga as another user than root, or in folders that every user may pass through, or permit it:\n"
        f"  {join(['chmod', 'o+x', *closed])}"
    )
