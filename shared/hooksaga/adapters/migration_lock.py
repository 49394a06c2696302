"""Transactions that change the schema: one at a time per database, with short waits for locks.

A transaction-level advisory lock works behind a pooler and ends with its session. A statement that changes a table
waits for all users of the table, and all later users wait behind it. So a transaction that waits for two seconds is
rolled back, lets the others proceed, and is retried.
"""

import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.rows import dict_row

from hooksaga.adapters import session_settings
from hooksaga.adapters.database_login import DatabaseAddress, owner_conninfos
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import MigrationFailed

T = TypeVar("T")
Row = dict[str, Any]
Tell = Callable[[str], None]

LOCK_SECONDS = 2.0
"""Limit of the total lock wait of a transaction, during which it can block others. It is longer than PostgreSQL's
deadlock_timeout (1 s), after which a waiting session cancels an autovacuum that is in its way."""

CLIENT_CHECK_SECONDS = 1.0
"""Time in which the server ends a long statement and its locks after `migrate` was killed."""

LOOK_SECONDS = 0.1
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 10.0

_KEY = 0x686F6F6B73616761  # "hooksaga"
_CONCURRENTLY_UPDATED = "concurrently updated"
"""Part of the message of an internal error: two databases of one server changed the same role."""


class _Held(Exception):
    """The message names the sessions that hold the required locks."""


class LockedTransactions:
    """Runs work in such transactions. Each is retried for patience_seconds; `tell` receives a message for each wait."""

    def __init__(self, address: DatabaseAddress, patience_seconds: float, tell: Tell) -> None:
        self._patience = patience_seconds
        self._tell = tell
        self._watch = _Watch(address)
        self._connection = connect_owner(address)
        self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

    def close(self) -> None:
        self._watch.close()
        self._connection.close()

    def run(self, name: str, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Return the committed result of the work, which may run several times.

        Raises MigrationFailed with the blocking sessions if the locks are not available in time.
        """
        begun = time.monotonic()
        for pause in _pauses():
            try:
                return self._try(name, work)
            except _Held as held:
                if time.monotonic() + pause > begun + self._patience:
                    raise MigrationFailed(
                        f"{held}; timed out after {time.monotonic() - begun:.0f} s"
                    ) from held
                self._tell(f"{held}; trying again in {pause:.1f} s")
                time.sleep(pause)
        raise AssertionError("unreachable: there is always another pause")

    def _try(self, name: str, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        connection = self._connection
        with self._watch.over() as watch:
            try:
                with connection.transaction():
                    connection.execute(
                        load_queries("session")["state_settings"], session_settings.as_params(_settings())
                    )
                    watch.pid = self._take_lock()
                    return work(connection)
            except (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure) as error:
                raise _Held(f"{name} waits for a lock: {watch.blockers or error}") from error
            except errors.QueryCanceled as error:
                if not watch.has_canceled:
                    raise MigrationFailed(f"{name}: {str(error).strip()}") from error
                raise _Held(f"{name} waits for locks: {watch.blockers}") from error
            except errors.InternalError_ as error:
                if _CONCURRENTLY_UPDATED not in str(error):
                    raise
                raise _Held(f"{name}: {error}") from error

    def _take_lock(self) -> int:
        """Take the lock and return the session's pid. Raises _Held."""
        row = self._connection.execute(load_queries("migrate")["take_lock"], {"key": _KEY}).fetchone()
        assert row is not None
        if not row["taken"]:
            holders = self._connection.execute(
                load_queries("migrate")["lock_holder"], {"key": _KEY}
            ).fetchall()
            who = described_sessions(self._connection, [holder["pid"] for holder in holders])
            raise _Held(f"another `hooksaga migrate` is at work: {who or 'it has just ended'}")
        return row["pid"]


def connect_owner(address: DatabaseAddress) -> psycopg.Connection[Row]:
    """Log in as the owner. Raises OperationalError with each refusal."""
    refusals = list[psycopg.OperationalError]()
    for conninfo in owner_conninfos(address):
        try:
            return psycopg.Connection[Row].connect(
                conninfo, autocommit=True, row_factory=dict_row, prepare_threshold=None
            )
        except psycopg.OperationalError as error:
            refusals.append(error)
    raise psycopg.OperationalError("; then: ".join(str(refusal).strip() for refusal in refusals))


def _settings() -> dict[str, str]:
    return {
        **session_settings.OWNER,
        "lock_timeout": f"{LOCK_SECONDS:g}s",
        "client_connection_check_interval": f"{CLIENT_CHECK_SECONDS:g}s",
        "password_encryption": "scram-sha-256",
    }


def _pauses() -> Iterator[float]:
    """Exponential pauses with up to 10 % jitter, so that concurrent migrations do not stay in step."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause * random.uniform(1, 1.1)  # noqa: S311 - no secret
        pause = min(2 * pause, MAX_PAUSE_SECONDS)


class _Watch:
    """Observes on a second connection which sessions block a transaction, and ends its waits in time.

    lock_timeout ends each single wait; only this sees the total. Without a second connection lock_timeout has to
    suffice.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._connection: psycopg.Connection[Row] | None = None
        self._over = threading.Event()
        self.pid: int | None = None
        self.blockers = ""
        self.has_canceled = False

    @contextmanager
    def over(self) -> Generator["_Watch"]:
        """Watch one transaction, from the moment when `pid` is set."""
        self.pid, self.blockers, self.has_canceled = None, "", False
        self._over.clear()
        thread = threading.Thread(target=self._look_until_over, name="migrate-watch", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _look_until_over(self) -> None:
        """Watch the wait from a second connection, unless the statement ends quickly."""
        try:
            waited, before = 0.0, time.monotonic()
            while not self._over.wait(LOOK_SECONDS):
                waits = self.pid is not None and self._look(self.pid)
                now = time.monotonic()
                waited, before = waited + (now - before if waits else 0), now
                if waited >= LOCK_SECONDS and self.pid is not None:
                    self._cancel(self.pid)
                    return
        except psycopg.Error:
            return

    def _look(self, pid: int) -> bool:
        connection = self._connection = self._connection or connect_owner(self._address)
        rows = connection.execute(load_queries("migrate")["blocking_pids"], {"pid": pid}).fetchall()
        if rows:
            self.blockers = described_sessions(connection, [row["pid"] for row in rows]) or self.blockers
        return bool(rows)

    def _cancel(self, pid: int) -> None:
        assert self._connection is not None
        self.has_canceled = True
        self._connection.execute(load_queries("migrate")["cancel"], {"pid": pid})


def described_sessions(connection: psycopg.Connection[Row], pids: list[int]) -> str:
    """Describe sessions: who they are, what they do, since when, and what ends them. Empty if they have ended."""
    found = connection.execute(load_queries("migrate")["sessions"], {"pids": pids}).fetchall()
    words = [_session_text(row) for row in found]
    if 0 in pids:
        prepared = connection.execute(load_queries("migrate")["prepared_transactions"]).fetchall()
        words += [_prepared_text(row) for row in prepared]
    return " and ".join(words)


def _session_text(row: Row) -> str:
    doing = row["state"] or "at what only pg_monitor may see"
    since = "" if row["seconds"] is None else f", its transaction open for {row['seconds']:.0f} s"
    query = "" if row["query_seconds"] is None else f", its query running for {row['query_seconds']:.0f} s"
    return (
        f"pid {row['pid']} (role {row['role']}, application {row['application_name']!r}, {doing}{since}{query}; "
        f"SELECT pg_terminate_backend({row['pid']}) ends it)"
    )


def _prepared_text(row: Row) -> str:
    return (
        f"the prepared transaction {row['gid']!r} (role {row['role']}, prepared {row['seconds']:.0f} s ago; "
        "COMMIT PREPARED or ROLLBACK PREPARED ends it)"
    )
