"""A lock between processes that the operating system releases when its holder dies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file against threads and processes. Waits without a limit.

    The file is created if missing and never removed: removing it would allow two holders.
    """
    with path.open("a+b") as file:
        _lock(file)
        yield  # closing the file releases the lock


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        while True:
            with suppress(OSError):  # it fails after ten seconds
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)
