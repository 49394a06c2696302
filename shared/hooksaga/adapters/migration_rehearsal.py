"""A rehearsal of migrations in an empty database: which commands they run, what they lock, rewrite, read and remove.

The server says all of this when a file runs, whatever its statements are. Only for how long a lock is held does the
number of rows matter, and the rehearsal says what that depends on: a rewrite, or a table that is read as a whole.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from hooksaga.adapters import session_settings
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.index_builds import index_statement
from hooksaga.adapters.libpq import conninfo
from hooksaga.adapters.migration_lock import Row, connect_owner
from hooksaga.adapters.migrations import run_text
from hooksaga.adapters.queries import load_queries

MODES = (
    *("AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock", "ShareLock"),
    *("ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"),
)
"""Lock modes of tables, from weak to strong. Those from the fifth on block writers, the last one readers too."""

_NOTED = MODES.index("RowShareLock")
_BLOCKS_WRITERS = MODES.index("ShareLock")
_OF_BUILD = "ShareUpdateExclusiveLock"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """One file. Tables that the file creates are left out, except in its commands.

    adds, takes_away: columns, functions, indexes, rights, constraints and others. locks: the strongest mode per table.
    rewrites: tables that are written anew, or have an index that is. reads: tables that are read as a whole.
    """

    name: str
    in_transaction: bool
    commands: list[str] = field(default_factory=list[str])
    adds: list[str] = field(default_factory=list[str])
    takes_away: list[str] = field(default_factory=list[str])
    locks: dict[str, str] = field(default_factory=dict[str, str])
    rewrites: list[str] = field(default_factory=list[str])
    reads: list[str] = field(default_factory=list[str])

    def lock_of(self, table: str) -> str:
        """Return the mode as in SQL, such as ACCESS EXCLUSIVE."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.locks[table].removesuffix("Lock")).upper()

    def blocked_by(self, table: str) -> str:
        """Return who waits for this lock: "readers and writers", "writers" or nobody, which is empty."""
        strength = MODES.index(self.locks[table])
        if strength == len(MODES) - 1:
            return "readers and writers"
        return "writers" if strength >= _BLOCKS_WRITERS else ""

    def long_locks(self) -> list[str]:
        """Return the tables whose writers are blocked for as long as it takes to read or write all rows."""
        whole = {*self.rewrites, *self.reads}
        return [table for table in self.locks if self.blocked_by(table) and table in whole]


def rehearse(url: str, applied: Mapping[str, str], pending: Mapping[str, str]) -> tuple[str, list[Rehearsed]]:
    """Run the applied files, then rehearse the pending ones, in an empty database of a superuser. Name -> text.

    Also returns the version of the server. Raises MigrationFailed.
    """
    with connect_owner(DatabaseAddress(conninfo(url))) as connection:
        rehearsal = _Rehearsal(connection)
        for name, text in applied.items():
            rehearsal.run(name, text)
        connection.execute(load_queries("rehearse")["begin_recording"])
        version = connection.info.parameter_status("server_version") or ""
        return version, [rehearsal.rehearse(name, text) for name, text in pending.items()]


@dataclass(frozen=True, slots=True)
class _Table:
    oid: int
    name: str
    reads: int
    indexes: frozenset[str]


class _Rehearsal:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        settings = {**session_settings.OWNER, "lock_timeout": "0"}
        connection.execute(
            load_queries("session")["state_session_settings"], session_settings.as_params(settings)
        )
        connection.execute(load_queries("migrate")["create_migrations_table"])

    def run(self, name: str, text: str) -> None:
        """Run a file as `migrate` does."""
        if statement := index_statement(name, text):
            self._connection.execute(statement.text.encode())
        else:
            with self._connection.transaction():
                run_text(self._connection, name, text)

    def rehearse(self, name: str, text: str) -> Rehearsed:
        before = self._parts()
        if statement := index_statement(name, text):
            self.run(name, text)
            locks = {statement.table: _OF_BUILD} if statement.table else {}
            done = Rehearsed(name, False, locks=locks, reads=[statement.table] if statement.table else [])
        else:
            done = self._in_transaction(name, text)
        for row in self._rows("take_commands"):
            if not row["is_rewrite"]:
                done.commands.append(f"{row['tag']} {row['object'] or ''}".strip())
        after = self._parts()
        done.adds.extend(sorted(after - before))
        done.takes_away.extend(sorted(before - after))
        return done

    def _in_transaction(self, name: str, text: str) -> Rehearsed:
        with self._connection.transaction():
            before = self._tables()
            run_text(self._connection, name, text)
            locks = self._locks(before)
            after = self._tables()
            found = self._connection.execute(load_queries("rehearse")["rewrites"]).fetchall()
        rewritten = {row["object"] for row in found}
        reads = list[str]()
        for oid, table in before.items():
            if oid in after and after[oid].reads > table.reads:
                reads.append(table.name)
            if oid in after and _are_rebuilt(table.indexes, after[oid].indexes):
                rewritten.add(table.name)
        known = {table.name for table in before.values()}
        return Rehearsed(name, True, locks=locks, rewrites=sorted(rewritten & known), reads=sorted(reads))

    def _locks(self, tables: Mapping[int, _Table]) -> dict[str, str]:
        """Return the strongest mode per table that was there before."""
        found = dict[str, str]()
        for row in self._rows("locks"):
            mode, table = row["mode"], tables.get(row["oid"])
            if table is None or MODES.index(mode) < _NOTED:
                continue
            found[table.name] = max(found.get(table.name, mode), mode, key=MODES.index)
        return dict(sorted(found.items()))

    def _tables(self) -> dict[int, _Table]:
        return {
            row["oid"]: _Table(row["oid"], row["name"], row["reads"], frozenset(row["indexes"] or ()))
            for row in self._rows("tables")
        }

    def _parts(self) -> set[str]:
        return {row["what"] for query in ("offers", "demands") for row in self._rows(query)}

    def _rows(self, query: str) -> Sequence[Row]:
        return self._connection.execute(load_queries("rehearse")[query]).fetchall()


def _are_rebuilt(before: frozenset[str], after: frozenset[str]) -> bool:
    """Return whether an index that stays has another file. Each is written as `oid:file`."""
    kept = {one.split(":")[0] for one in before} & {one.split(":")[0] for one in after}
    return any(one.split(":")[0] in kept for one in before - after)
