"""PostgreSQL through psycopg: one connection per session, each logged in as the role of one function.

Lock order: sagas before jobs, rows of one table by id. Locked rows are skipped. No transaction is open while anything
but the database is waited for.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors
from psycopg.rows import dict_row, scalar_row

from hooksaga.adapters import session_settings
from hooksaga.adapters.database_login import DatabaseAddress, Role, WatchedConnection, connect_as
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.row_mapping import rows_as
from hooksaga.adapters.sqlstates import Fault, fault_of_error, translated
from hooksaga.core.errors import DatabaseUnavailable, HooksagaError, ValueRefused

Connection = AsyncConnection[Any]
Params = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

RERUNS = 4
"""Maximum number of runs of a unit that lost a deadlock or a serialization race."""

IDLE_CHECK_SECONDS = 5
"""A connection idle for this long is checked before use: the machine may have been suspended, or a NAT may have
dropped it."""


class Session(AbstractAsyncContextManager["Session"]):
    """One connection for one role. It is opened on first use, replaced when it breaks, and used by one unit at a
    time."""

    def __init__(self, address: DatabaseAddress, role: Role, *, reads_only: bool = False) -> None:
        """reads_only: no unit writes, so any unit may be repeated."""
        self._address = address
        self._role = role
        self._reads_only = reads_only
        self._connection: WatchedConnection | None = None
        self._last_used = 0.0
        self._lock = asyncio.Lock()

    async def run(
        self, unit: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a unit of work that is safe to repeat, and return its result. It gets the connection and these arguments.

        A unit that loses a deadlock or a serialization race is repeated a few times. A connection that breaks before
        the unit can have committed is replaced, and the unit is repeated once. Raises DatabaseUnavailable if the
        database is unreachable, read-only, full, too slow or misconfigured, RowRefused if it rejects a row, and
        SchemaMismatch if its schema has another version.
        """
        async with self._lock:
            for left in reversed(range(RERUNS)):
                try:
                    return await self._run_in_time(lambda connection: unit(connection, *args, **kwargs))
                except (errors.DeadlockDetected, errors.SerializationFailure) as error:
                    if not left:
                        raise DatabaseUnavailable(f"lost the race {RERUNS} times: {error}") from error
            raise AssertionError("unreachable: the last run returns or raises")

    async def _run_in_time(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._address.unit_timeout_seconds):
                return await self._run_or_replace(unit)
        except TimeoutError as error:
            await self.close()
            raise DatabaseUnavailable("the database did not answer in time") from error
        except (errors.DeadlockDetected, errors.SerializationFailure):
            raise
        except psycopg.Error as error:
            raise translated(error).with_traceback(error.__traceback__) from None  # which quotes values
        except BaseException:
            await self._close_if_unusable()
            raise

    async def _run_or_replace(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        kept = self._connection
        connection = await self._ready_connection()
        try:
            return await self._run_on(connection, unit)
        except psycopg.Error as error:
            is_lost = connection is kept and self._connection is None
            if not is_lost or not self._changed_nothing(connection, error):
                raise
        return await self._run_on(await self._ready_connection(), unit)

    def _changed_nothing(self, connection: WatchedConnection, error: psycopg.Error) -> bool:
        """Return whether the unit lost with the connection cannot have changed anything. The server ends an idle
        session only before it reads the next statement."""
        was_idle = isinstance(error, errors.IdleSessionTimeout) and not connection.answers
        return self._reads_only or was_idle or not connection.may_have_committed

    async def _run_on(self, connection: WatchedConnection, unit: Callable[[Connection], Awaitable[T]]) -> T:
        connection.start_unit()
        try:
            answer = await (_run_as_owner(connection, unit) if self._role is Role.OWNER else unit(connection))
        except psycopg.Error as error:
            await self._close_if_useless(error)
            raise
        self._last_used = time.monotonic()
        await self._close_if_unusable()
        return answer

    async def _ready_connection(self) -> WatchedConnection:
        if self._connection is not None and not await self._is_usable(self._connection):
            await self.close()
        if self._connection is None:
            self._connection = await self._connect()
            self._last_used = time.monotonic()
        return self._connection

    async def _connect(self) -> WatchedConnection:
        connection = await connect_as(self._address, self._role)
        try:
            if self._role is not Role.OWNER:
                await _check_settings(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _is_usable(self, connection: WatchedConnection) -> bool:
        if connection.has_ended():
            return False
        return time.monotonic() - self._last_used < IDLE_CHECK_SECONDS or await self._is_alive(connection)

    async def _is_alive(self, connection: Connection) -> bool:
        try:
            async with asyncio.timeout(self._address.connect_timeout_seconds):
                await connection.execute("SELECT 1")
        except (psycopg.Error, TimeoutError):
            return False
        return True

    async def _close_if_useless(self, error: psycopg.Error) -> None:
        """Close the connection after errors of a read-only server or one that shuts down: such a server still answers
        pings."""
        if fault_of_error(error) is Fault.CONNECTION:
            await self.close()
        else:
            await self._close_if_unusable()

    async def _close_if_unusable(self) -> None:
        """Close a connection with an open transaction, or to a read-only server."""
        connection = self._connection
        if connection is not None and (
            connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE
            or connection.can_only_be_read()
        ):
            await self.close()

    def check_before_next_use(self) -> None:
        """Check the connection before the next unit, however recently it was used: clocks stop while a process is
        frozen."""
        self._last_used = float("-inf")

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. The next unit opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class Sessions:
    """Several sessions of one role for concurrent callers. A caller waits while all are in use."""

    def __init__(self, address: DatabaseAddress, role: Role, size: int, *, reads_only: bool = False) -> None:
        self._all = [Session(address, role, reads_only=reads_only) for _ in range(size)]
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for session in self._all:
            self._free.put_nowait(session)

    async def run(
        self, unit: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like Session.run, on an idle session."""
        session = await self._free.get()
        try:
            return await session.run(unit, *args, **kwargs)
        finally:
            self._free.put_nowait(session)

    def check_before_next_use(self) -> None:
        """Like Session.check_before_next_use, for all sessions."""
        for session in self._all:
            session.check_before_next_use()

    async def close(self) -> None:
        """Close all connections."""
        for session in self._all:
            await session.close()


async def _run_as_owner(connection: Connection, unit: Callable[[Connection], Awaitable[T]]) -> T:
    """Run the unit in a transaction that sets the required settings."""
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    async with transaction(connection):
        await connection.execute(
            load_queries("session")["state_settings"], session_settings.as_params(session_settings.OWNER)
        )
        return await unit(connection)


async def _check_settings(connection: Connection) -> None:
    """Check the settings of a new connection. Wrong ones cause no error later. Raises DatabaseUnavailable."""
    wrong = await fetch_dicts(connection, load_queries("session")["wrong_settings"], {})
    if wrong:
        found = ", ".join(f"{row['name']} = {row['value']!r}" for row in wrong)
        raise DatabaseUnavailable(
            f"sessions of {connection.info.user} would read the database incorrectly because of {found}: run "
            "`hooksaga migrate`, which configures them, and check that no ALTER ROLE overrides it"
        )


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncGenerator[None]:
    """Run one transaction: commit at the end, roll back on any exception. Raises RowRefused for a rejected row."""
    watched = connection if isinstance(connection, WatchedConnection) else None
    async with refusals():
        if watched is not None:
            watched.begins = True
        async with connection.transaction():
            if watched is not None:
                watched.begins = False
            yield
            if watched is not None:
                watched.may_have_committed = True


@asynccontextmanager
async def refusals() -> AsyncGenerator[None]:
    """Convert rejections of a row to RowRefused, so that a stage can retry the rows one by one."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueRefused(f"half of a surrogate pair is no text: {error}") from error
    except psycopg.Error as error:
        if fault_of_error(error) in (Fault.SENDER, Fault.ROW):
            raise translated(error).with_traceback(error.__traceback__) from None  # which quotes values
        raise


async def fetch_rows(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> list[R]:
    """Return all rows as objects of the class, whose fields have the names of the columns."""
    async with connection.cursor(row_factory=rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def fetch_row(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> R | None:
    async with connection.cursor(row_factory=rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchone()


async def fetch_found(
    connection: Connection, query: LiteralString, params: Params, row: type[R], missing: HooksagaError
) -> R:
    """Return the first row. Raises `missing` without one."""
    found = await fetch_row(connection, query, params, row)
    if found is None:
        raise missing
    return found


async def fetch_one(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> R:
    """Return the row of a query that has exactly one."""
    return (await fetch_rows(connection, query, params, row))[0]


async def fetch_values(connection: Connection, query: LiteralString, params: Params) -> list[Any]:
    """Return the first column of all rows."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def fetch_value(connection: Connection, query: LiteralString, params: Params) -> Any:
    """Return the first column of the first row; None without a row."""
    values = await fetch_values(connection, query, params)
    return values[0] if values else None


async def fetch_dicts(connection: Connection, query: LiteralString, params: Params) -> list[dict[str, Any]]:
    """Return all rows as dicts, for results whose columns are not known beforehand."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()
