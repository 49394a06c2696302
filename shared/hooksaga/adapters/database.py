"""PostgreSQL through psycopg: one connection per session, each logged in as the role of one function.

Lock order, everywhere: sagas before jobs, rows of one table by id. What another worker holds is skipped, not
waited for. No transaction is open while anything but the database is waited for.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors
from psycopg.rows import dict_row

from hooksaga.adapters import session_settings
from hooksaga.adapters.database_login import DatabaseAddress, Role, WatchedConnection, connect_as
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.row_mapping import rows_as
from hooksaga.adapters.sqlstates import Fault, fault_of_error, translated
from hooksaga.core.errors import DatabaseUnavailable, ValueRefused

Connection = AsyncConnection[Any]
Params = Mapping[str, Any]
T = TypeVar("T")
R = TypeVar("R")

RERUNS = 4
"""How often a unit that lost a deadlock or a serialization race is run, in all."""

IDLE_CHECK_SECONDS = 5
"""A connection unused for this long is asked for a sign of life first: it may have slept through a freeze, or be one
that a NAT on the way has forgotten."""


class Session:
    """One connection for one role, opened on first use, replaced when it breaks, used by one unit at a time."""

    def __init__(self, address: DatabaseAddress, role: Role, *, reads_only: bool = False) -> None:
        """reads_only: no unit writes anything, so any of them may be run again."""
        self._address = address
        self._role = role
        self._reads_only = reads_only
        self._connection: WatchedConnection | None = None
        self._last_used = 0.0
        self._lock = asyncio.Lock()

    async def run(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a unit of work that is safe to repeat, and give back its answer.

        A deadlock or serialization failure re-runs the whole unit a few times. A connection that was opened for an
        earlier unit and breaks before this one can have committed anything is replaced, and the unit is run once
        more. Raises DatabaseUnavailable when the database is away, read-only, full, too slow or set up wrongly,
        RowRefused when it does not take a row, and SchemaMismatch when it is not the database of this version.
        """
        async with self._lock:
            for left in reversed(range(RERUNS)):
                try:
                    return await self._run_in_time(unit)
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
        """Whether the unit that was lost with the connection cannot have changed anything. A session is ended for its
        idleness only before it has read the next statement."""
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
        """A server that has become read-only or is going down answers pings well: let go of it by its errors."""
        if fault_of_error(error) is Fault.CONNECTION:
            await self.close()
        else:
            await self._close_if_unusable()

    async def _close_if_unusable(self) -> None:
        """For the next unit: a transaction is open, or the server can only be read."""
        connection = self._connection
        if connection is not None and (
            connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
            or _can_only_be_read(connection)
        ):
            await self.close()

    def check_before_next_use(self) -> None:
        """Ask for a sign of life first, however short ago the last use seems: clocks stand still in a freeze."""
        self._last_used = float("-inf")

    async def close(self) -> None:
        """Close the connection, if there is one. The next unit opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class Sessions:
    """A few sessions of one role for callers that come at the same time. A caller waits when all are in use."""

    def __init__(self, address: DatabaseAddress, role: Role, size: int, *, reads_only: bool = False) -> None:
        self._all = [Session(address, role, reads_only=reads_only) for _ in range(size)]
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for session in self._all:
            self._free.put_nowait(session)

    async def run(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        """As Session.run, on a session that nobody uses."""
        session = await self._free.get()
        try:
            return await session.run(unit)
        finally:
            self._free.put_nowait(session)

    def check_before_next_use(self) -> None:
        """As Session.check_before_next_use, for all."""
        for session in self._all:
            session.check_before_next_use()

    async def close(self) -> None:
        """Close every connection."""
        for session in self._all:
            await session.close()


async def _run_as_owner(connection: Connection, unit: Callable[[Connection], Awaitable[T]]) -> T:
    """In one transaction that states what the unit depends on."""
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
    async with transaction(connection):
        await connection.execute(
            load_queries("session")["state_settings"], settings_params(session_settings.OWNER)
        )
        return await unit(connection)


def settings_params(settings: Mapping[str, str]) -> dict[str, list[str]]:
    """Parameters of the query `state_settings`."""
    return {"names": list(settings), "values": list(settings.values())}


async def _check_settings(connection: Connection) -> None:
    """Once for each connection, because nothing would tell otherwise. Raises DatabaseUnavailable."""
    wrong = await fetch_dicts(connection, load_queries("session")["wrong_settings"], {})
    if wrong:
        found = ", ".join(f"{row['name']} = {row['value']!r}" for row in wrong)
        raise DatabaseUnavailable(
            f"sessions of {connection.info.user} would misread the database, because of {found}: run "
            "`hooksaga migrate`, which states what they need, and see that no ALTER ROLE says otherwise"
        )


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncGenerator[None]:
    """One transaction; committed at the end, rolled back when anything is raised inside.

    Raises RowRefused for a row that the database does not take.
    """
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
    """Turns the database's refusal of a row into RowRefused, so that a stage can try the rows one by one."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueRefused(f"half of a surrogate pair is no text: {error}") from error
    except psycopg.Error as error:
        if fault_of_error(error) in (Fault.SENDER, Fault.ROW):
            raise translated(error).with_traceback(error.__traceback__) from None  # which quotes values
        raise


async def fetch_rows(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> list[R]:
    """Every row of the answer as an object of the class, whose fields are named as the columns are."""
    async with connection.cursor(row_factory=rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def fetch_row(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> R | None:
    """The first row of the answer, or None."""
    async with connection.cursor(row_factory=rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchone()


async def fetch_dicts(connection: Connection, query: LiteralString, params: Params) -> list[dict[str, Any]]:
    """Every row of the answer by column name, for answers whose columns are not known beforehand."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


def _can_only_be_read(connection: Connection) -> bool:
    """Whether the server said so with its last answer. After a failover the old one may go on answering reads from
    rows that no longer change, without an error: who only looks for work would never find any again."""
    return "on" in [connection.info.parameter_status(name) for name in _READ_ONLY_PARAMETERS]


_READ_ONLY_PARAMETERS = ("default_transaction_read_only", "in_hot_standby")
"""PostgreSQL 14 and later report their changes unasked."""
