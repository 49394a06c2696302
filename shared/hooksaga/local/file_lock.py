"""A lock between processes that the system drops when its holder dies, however it dies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of one file against threads and processes; waits for as long as it takes.

    The file is made when missing and stays: removing it would let two holders in.
    """
    with path.open("a+b") as file:
        _lock(file)
        yield  # closing the file lets go


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        while True:
            with suppress(OSError):  # it gives up after ten seconds
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)
