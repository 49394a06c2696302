"""Migrations that build or drop one index CONCURRENTLY, which no transaction may contain.

Such a file has one statement. It can be run again at any moment: an interrupted build leaves an invalid index, which
the next run drops and builds again, and a valid index of that name counts as built. Writers are never blocked. A build
waits for older transactions on its table; `tell` receives who they are.
"""

import re
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import psycopg

from hooksaga.adapters import session_settings
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migration_lock import (
    CLIENT_CHECK_SECONDS,
    Row,
    Tell,
    connect_owner,
    described_sessions,
)
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import DatabaseUnavailable, MigrationFailed

LOOK_SECONDS = 0.5
TELL_SECONDS = 10.0
"""Time from one message about a build to the next."""

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CREATE = re.compile(
    r"CREATE (?P<unique>UNIQUE )?INDEX CONCURRENTLY (?P<name>\w+) ON public\.(?P<table>\w+)\b[^;]*;?"
)
_DROP = re.compile(r"DROP INDEX CONCURRENTLY IF EXISTS public\.(?P<name>\w+);?")
_RULE = (
    "a file with CONCURRENTLY contains one statement, CREATE [UNIQUE] INDEX CONCURRENTLY name ON public.table … or "
    "DROP INDEX CONCURRENTLY IF EXISTS public.name, and nothing else"
)


@dataclass(frozen=True, slots=True)
class IndexStatement:
    """The statement of such a file. table: where the index is built; empty for a drop."""

    text: str
    name: str
    table: str = ""


def index_statement(name: str, text: str) -> IndexStatement | None:
    """Return the statement, or None for a migration that is a transaction. Raises MigrationFailed for a mixture."""
    bare = " ".join(_COMMENT.sub(" ", text).split())
    if not re.search(r"\bCONCURRENTLY\b", bare):
        return None
    if found := _CREATE.fullmatch(bare):
        return IndexStatement(bare, found["name"], found["table"])
    if found := _DROP.fullmatch(bare):
        return IndexStatement(bare, found["name"])
    raise MigrationFailed(f"{name}: {_RULE}")


@dataclass(frozen=True, slots=True)
class IndexBuilds:
    """Runs such statements on connections of their own.

    A build that waits for other sessions for patience_seconds in all is ended. Its removal would wait for them too, so
    that is left to the next run.
    """

    address: DatabaseAddress
    patience_seconds: float
    tell: Tell

    def run(self, migration: str, statement: IndexStatement) -> None:
        """Run the statement, unless its index is there. Raises MigrationFailed, after removing what failed.

        The caller's transaction holds the lock of migrations meanwhile. It has no snapshot and no transaction id, so
        the build does not wait for it.
        """
        with closing(connect_owner(self.address)) as connection:
            _set_session(connection)
            run = _Run(self, migration, statement, connection)
            if not statement.table:
                run.execute(statement.text)
                return
            is_valid = _is_valid(connection, statement.name)
            if is_valid:
                return
            if is_valid is False:
                self.tell(f"{migration}: drops the invalid index {statement.name} of an interrupted build")
                run.drop()
            try:
                run.execute(statement.text)
            except MigrationFailed:
                if not run.was_ended:
                    run.drop()
                raise


class _Run:
    """Statements for one index on one connection, each observed from a second connection."""

    def __init__(
        self,
        builds: IndexBuilds,
        migration: str,
        statement: IndexStatement,
        connection: psycopg.Connection[Row],
    ) -> None:
        self._builds = builds
        self._migration = migration
        self._statement = statement
        self._connection = connection
        self._pid = _pid(connection)
        self._over = threading.Event()
        self._blockers = ""
        self.was_ended = False

    def execute(self, text: str) -> None:
        """Raises MigrationFailed, and DatabaseUnavailable if the connection breaks."""
        self._over.clear()
        self.was_ended = False
        thread = threading.Thread(target=self._look_until_over, name="migrate-build", daemon=True)
        thread.start()
        try:
            self._connection.execute(text.encode())
        except psycopg.Error as error:
            raise self._failure(error) from error
        finally:
            self._over.set()
            thread.join()

    def drop(self) -> None:
        self.execute(f"DROP INDEX CONCURRENTLY IF EXISTS public.{self._statement.name}")

    def _failure(self, error: psycopg.Error) -> MigrationFailed | DatabaseUnavailable:
        reason = str(error).strip()
        if self._connection.broken:
            return DatabaseUnavailable(reason)
        if self.was_ended:
            reason = (
                f"waited too long for older transactions: {self._blockers}; the next run removes what is left of "
                f"{self._statement.name} and builds it again"
            )
        elif isinstance(error, psycopg.errors.QueryCanceled) and _is_pooled(self._connection):
            reason += "; the owner's time limits apply behind a pooler: run `hooksaga migrate` without it"
        return MigrationFailed(f"{self._migration}: {reason}")

    def _look_until_over(self) -> None:
        try:
            with closing(connect_owner(self._builds.address)) as connection:
                self._look(connection)
        except psycopg.Error:
            return

    def _look(self, connection: psycopg.Connection[Row]) -> None:
        queries, waited, told = load_queries("migrate"), 0.0, time.monotonic()
        while not self._over.wait(LOOK_SECONDS):
            rows = connection.execute(queries["blocking_pids"], {"pid": self._pid}).fetchall()
            blockers = described_sessions(connection, [row["pid"] for row in rows]) if rows else ""
            self._blockers, waited = blockers or self._blockers, waited + (LOOK_SECONDS if rows else 0)
            if waited > self._builds.patience_seconds:
                self.was_ended = True
                connection.execute(queries["cancel"], {"pid": self._pid})
                return
            if time.monotonic() > told + TELL_SECONDS:
                told = time.monotonic()
                progress = connection.execute(queries["build_progress"], {"pid": self._pid}).fetchone()
                self._builds.tell(f"{self._migration} {_state(self._statement, blockers, progress)}")


def _set_session(connection: psycopg.Connection[Row]) -> None:
    """Set what a build needs. Behind a pooler the session is also others', so there the owner's defaults apply; the
    names in the statement are qualified for that reason."""
    if _is_pooled(connection):
        return
    settings = {
        **session_settings.OWNER,
        "lock_timeout": "0",
        "client_connection_check_interval": f"{CLIENT_CHECK_SECONDS:g}s",
    }
    connection.execute(
        load_queries("session")["state_session_settings"], session_settings.as_params(settings)
    )


def _is_pooled(connection: psycopg.Connection[Row]) -> bool:
    """Return whether a pooler answers: it invents the number that it calls the session's pid."""
    return connection.info.backend_pid != _pid(connection)


def _pid(connection: psycopg.Connection[Row]) -> int:
    row = connection.execute(load_queries("migrate")["own_pid"]).fetchone()
    assert row is not None
    return row["pid"]


def _is_valid(connection: psycopg.Connection[Row], name: str) -> bool | None:
    """Return whether the index is valid, or None if there is none."""
    row = connection.execute(load_queries("migrate")["index_state"], {"name": name}).fetchone()
    return None if row is None else row["is_valid"]


def _state(statement: IndexStatement, blockers: str, progress: Row | None) -> str:
    what = f"builds {statement.name}" if statement.table else f"drops {statement.name}"
    if blockers:
        return f"{what} and waits for older transactions: {blockers}"
    if progress is None:
        return what
    share = "" if progress["percent"] is None else f", {progress['percent']:.0f} %"
    return f"{what}: {progress['phase']}{share}"
