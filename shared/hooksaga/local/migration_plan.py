"""The plan of `hooksaga migrate --plan`: what the pending migrations do and lock, without a change of the database.

The database is only read: which migrations it has, and the sizes of its tables. The files are run on an embedded server
in a temporary folder, which knows the locks of each statement. A trial in the database itself, rolled back, would hold
those locks for as long as a rewrite takes.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, fetch_dicts
from hooksaga.adapters.migration_rehearsal import Rehearsed, rehearse
from hooksaga.adapters.migrations import SQL_DIR, migration_files, migration_text
from hooksaga.adapters.queries import load_queries
from hooksaga.local.given_database import run_as
from hooksaga.local.postgres import EmbeddedPostgres


@dataclass(frozen=True, slots=True)
class Target:
    """What is read from the database that is to be migrated. sizes: table -> (bytes, estimated rows or None)."""

    version: str
    applied: frozenset[str]
    sizes: dict[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """rehearsed: in the order of their runs. unknown: applied, and not files of this version."""

    target: Target
    tried_on: str
    rehearsed: list[Rehearsed]
    unknown: list[str]

    def content(self) -> dict[str, Any]:
        return {
            "server_version": self.target.version,
            "tried_on_version": self.tried_on,
            "unknown": self.unknown,
            "migrations": [self._migration(one) for one in self.rehearsed],
        }

    def _migration(self, one: Rehearsed) -> dict[str, Any]:
        return {
            "name": one.name,
            "in_transaction": one.in_transaction,
            "commands": one.commands,
            "adds": one.adds,
            "takes_away": one.takes_away,
            "tables": [self._table(one, name) for name in one.locks],
        }

    def _table(self, one: Rehearsed, name: str) -> dict[str, Any]:
        size, rows = self.target.sizes.get(name, (0, 0))
        return {
            "name": name,
            "bytes": size,
            "estimated_rows": rows,
            "lock": one.lock_of(name),
            "blocks": one.blocked_by(name),
            "rewrites": name in one.rewrites,
            "reads_all_rows": name in one.reads,
            "blocks_for_all_rows": name in one.long_locks(),
        }


async def read_target(address: DatabaseAddress) -> Target:
    """Raises DatabaseUnavailable."""
    return await run_as(address, Role.OWNER, _read)


def plan_migrations(target: Target, folder: Path = SQL_DIR) -> Plan:
    """Rehearse the files that the target does not have. Blocks for some seconds. Raises MigrationFailed."""
    texts = {path.stem: migration_text(path) for path in migration_files(folder)}
    pending = {name: text for name, text in texts.items() if name not in target.applied}
    unknown = sorted(target.applied - texts.keys())
    if not pending:
        return Plan(target, "", [], unknown)
    place = Path(tempfile.mkdtemp(prefix="hooksaga-plan-"))
    server = EmbeddedPostgres(place, tell=lambda _: None)
    try:
        applied = {name: text for name, text in texts.items() if name in target.applied}
        version, rehearsed = rehearse(server.start(), applied, pending)
        return Plan(target, version, rehearsed, unknown)
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)


async def _read(connection: Connection) -> Target:
    queries = load_queries("rehearse")
    (facts,) = await fetch_dicts(connection, queries["target"], {})
    applied = await fetch_dicts(connection, queries["applied"], {}) if facts["has_migrations"] else []
    rows = await fetch_dicts(connection, queries["sizes"], {})
    sizes = {row["name"]: (row["bytes"], row["row_count"]) for row in rows}
    return Target(facts["version"], frozenset(row["name"] for row in applied), sizes)
