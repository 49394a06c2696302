"""A PostgreSQL server whose clock a test sets: forwards or back, by any step, while the server runs.

libfaketime stands between the server and the system's clock. Everything that the server reads from it is moved: now(),
clock_timestamp(), the times in uuidv7() and in the log. The clock that only measures durations is not, as where an
operator or NTP sets the time.
"""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.local.postgres import EmbeddedPostgres

_SYSTEM_LIBRARIES = "**/faketime/libfaketime.so.1"


class MovedClock:
    """The clock of one server. 0 seconds is the right time."""

    def __init__(self, url: str, file: Path) -> None:
        self.url = url
        self._file = file

    def set(self, seconds: float) -> None:
        """How far the clock is ahead; behind if less than 0. From the next look at it on."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{seconds:+.3f}s\n")
        draft.rename(self._file)


@contextmanager
def server_with_moved_clock() -> Iterator[MovedClock]:
    """A migrated database on a server of its own. Skips the test, loudly, where there is no libfaketime."""
    library = _library()
    folder = Path(tempfile.mkdtemp(prefix=f"hooksaga-tests-{os.getpid()}-"))
    folder.chmod(0o755)  # the server's user reads the file, and loads the library
    file = folder / "clock"
    server = EmbeddedPostgres(folder / "data")
    try:
        clock = MovedClock("", file)
        clock.set(0)
        shutil.copy(library, folder / "libfaketime.so")
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("LD_PRELOAD", str(folder / "libfaketime.so"))
            environment.setenv("FAKETIME_TIMESTAMP_FILE", str(file))
            environment.setenv("FAKETIME_NO_CACHE", "1")
            environment.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            clock.url = server.start()
        migrate(DatabaseAddress(clock.url))
        _check(clock)
        yield clock
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _library() -> Path:
    """Return libfaketime of the installed wheel (Linux on x86_64), or of the system's package."""
    spec = importlib.util.find_spec("libfaketime")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for place in places for path in Path(place).glob("vendor/**/libfaketime.so.1")]
    found += [
        path for place in (Path("/usr/lib"), Path("/usr/local/lib")) for path in place.glob(_SYSTEM_LIBRARIES)
    ]
    if not found:
        pytest.skip(
            "no clock of a database can be moved here: there is no libfaketime (apt-get install faketime)"
        )
    return found[0]


def _check(clock: MovedClock) -> None:
    """A clock that does not move would let every test pass."""
    ahead = "SELECT extract(epoch FROM clock_timestamp()) - %s"
    with psycopg.connect(clock.url, autocommit=True) as connection:
        right = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        assert right is not None
        for seconds in (-600, 600, 0):
            clock.set(seconds)
            moved = connection.execute(ahead, [right[0]]).fetchone()
            assert moved is not None
            assert abs(float(moved[0]) - seconds) < 60
