"""PostgreSQL through psycopg: one connection per session, each logged in as the role of one function.

Lock order, everywhere: sagas before jobs, rows of one table by id. What another worker holds is skipped, not
waited for. No transaction is open while anything but the database is waited for.
"""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from inspect import signature
from operator import itemgetter
from types import NoneType
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import AsyncRowFactory, RowMaker, dict_row
from psycopg.types.array import ListDumper

from shared.core.errors import DatabaseUnavailable, RowRefused, SchemaMismatch

Connection = AsyncConnection[Any]
Params = Mapping[str, Any]
T = TypeVar("T")
R = TypeVar("R")

RERUNS = 4
"""How often a unit that lost a deadlock or a serialization race is run, in all."""

IDLE_CHECK_SECONDS = 30
"""A connection unused for this long is asked for a sign of life first: it may have slept through a freeze."""


class Role(StrEnum):
    """The database roles of spec §5, and the dashboards' own. OWNER is the user that the database URL names."""

    INGEST = "event_ingest_writer"
    ROUTER = "router_worker"
    ORCHESTRATOR = "saga_orchestrator"
    DELIVERY = "job_worker"
    LEASE_CLEANER = "lease_cleaner"
    HEALTH_MONITOR = "endpoint_health_monitor"
    SUBSCRIPTIONS = "subscription_admin"
    ADMIN = "dead_letter_operator"
    OBSERVER = "observer"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where the database is. prepare: use server-side prepared statements; off behind a transaction pooler.

    mint_password, when given, makes the password of a role at each new connection: tokens expire.
    """

    url: str
    prepare: bool = False
    connect_timeout_seconds: int = 5
    unit_timeout_seconds: float = 40
    mint_password: Callable[[str], str] | None = None


def role_password(owner_password: str, role: Role) -> str:
    """A password for the role that tells nothing of the owner's: HMAC-SHA256 of the role's name under it."""
    digest = hmac.new(owner_password.encode(), f"hooksaga:{role}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode()


def is_conninfo(text: str) -> bool:
    """Whether libpq can read the text as a connection string."""
    try:
        return bool(conninfo_to_dict(text))
    except psycopg.Error:
        return False


def role_conninfo(address: DatabaseAddress, role: Role) -> str:
    """libpq connection string that logs in as the role, with dead peers noticed within about 15 s."""
    given = conninfo_to_dict(address.url)
    login: dict[str, Any] = {}
    if role is not Role.OWNER and given.get("user") != role:
        login["user"] = role.value
        if address.mint_password:
            login["password"] = address.mint_password(role.value)
        elif given.get("password"):
            login["password"] = role_password(str(given["password"]), role)
    return make_conninfo(
        address.url,
        **login,
        application_name=f"hooksaga {role}",
        client_encoding="UTF8",
        connect_timeout=address.connect_timeout_seconds,
        keepalives_idle=5,
        keepalives_interval=3,
        keepalives_count=3,
        tcp_user_timeout=15_000,
    )


async def connect_as(address: DatabaseAddress, role: Role) -> Connection:
    """A connection that commits each statement by itself. Raises psycopg.OperationalError."""
    return await psycopg.AsyncConnection.connect(
        role_conninfo(address, role),
        autocommit=True,
        prepare_threshold=2 if address.prepare else None,
        context=_ADAPTERS,
    )


class Session:
    """One connection for one role, opened on first use, replaced when it breaks, used by one unit at a time."""

    def __init__(self, address: DatabaseAddress, role: Role) -> None:
        self._address = address
        self._role = role
        self._connection: Connection | None = None
        self._last_used = 0.0
        self._lock = asyncio.Lock()

    async def run(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a unit of work that is safe to repeat, and give back its answer.

        A deadlock or serialization failure re-runs the whole unit a few times. Raises DatabaseUnavailable when
        the database is away, read-only, full or too slow, RowRefused when it does not take a value, and
        SchemaMismatch when it is not the database of this version.
        """
        async with self._lock:
            for left in reversed(range(RERUNS)):
                try:
                    return await self._run_once(unit)
                except (errors.DeadlockDetected, errors.SerializationFailure) as error:
                    if not left:
                        raise DatabaseUnavailable(f"lost the race {RERUNS} times: {error}") from error
            raise AssertionError("unreachable: the last run returns or raises")

    async def _run_once(self, unit: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._address.unit_timeout_seconds):
                connection = await self._ready_connection()
                answer = await unit(connection)
        except TimeoutError as error:
            await self.close()
            raise DatabaseUnavailable("the database did not answer in time") from error
        except (errors.DeadlockDetected, errors.SerializationFailure):
            raise
        except psycopg.Error as error:
            await self._close_if_useless(error)
            raise _translated(error) from error
        except BaseException:
            await self._close_if_unfit()
            raise
        self._last_used = time.monotonic()
        await self._close_if_unfit()
        return answer

    async def _ready_connection(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            if time.monotonic() - self._last_used < IDLE_CHECK_SECONDS or await self._is_alive(
                self._connection
            ):
                return self._connection
            await self.close()
        self._connection = await connect_as(self._address, self._role)
        self._last_used = time.monotonic()
        return self._connection

    async def _is_alive(self, connection: Connection) -> bool:
        try:
            async with asyncio.timeout(self._address.connect_timeout_seconds):
                await connection.execute("SELECT 1")
        except (psycopg.Error, TimeoutError):
            return False
        return True

    async def _close_if_useless(self, error: psycopg.Error) -> None:
        """A server that has become read-only or is going down answers pings well: let go of it by its errors."""
        broken = error.sqlstate is None and not isinstance(error, psycopg.DataError)
        if broken or (error.sqlstate or "").startswith(_CLOSING_STATES):
            await self.close()
        else:
            await self._close_if_unfit()

    async def _close_if_unfit(self) -> None:
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

    def __init__(self, address: DatabaseAddress, role: Role, size: int) -> None:
        self._all = [Session(address, role) for _ in range(size)]
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


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncGenerator[None]:
    """One transaction; committed at the end, rolled back when anything is raised inside.

    Raises RowRefused for a value that the database does not take.
    """
    async with refusals(), connection.transaction():
        yield


@asynccontextmanager
async def refusals() -> AsyncGenerator[None]:
    """Turns the database's refusal of a value into RowRefused, so that a stage can try the rows one by one."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise RowRefused(f"half of a surrogate pair is no text: {error}") from error
    except psycopg.Error as error:
        if _is_about_a_value(error):
            raise RowRefused(str(error)) from error
        raise


async def fetch_rows(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> list[R]:
    """Every row of the answer as an object of the class, whose fields are named as the columns are."""
    async with connection.cursor(row_factory=_rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


async def fetch_row(connection: Connection, query: LiteralString, params: Params, row: type[R]) -> R | None:
    """The first row of the answer, or None."""
    async with connection.cursor(row_factory=_rows_as(row)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchone()


async def fetch_dicts(connection: Connection, query: LiteralString, params: Params) -> list[dict[str, Any]]:
    """Every row of the answer by column name, for answers whose columns are not known beforehand."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


class ColumnDumper(ListDumper):
    """A list as the text of an array, as psycopg writes it, but at once where it holds numbers or texts: its own
    goes from item to item. Set-based SQL takes every column of a batch as such a list."""

    def dump(self, obj: list[Any]) -> Any:
        """Raises psycopg.DataError for a NUL in a text, UnicodeEncodeError for half of a surrogate pair."""
        types = set(map(type, obj))
        if types <= _NUMBERS:
            return f"{{{str(obj)[1:-1].replace('None', 'NULL')}}}".encode()
        if types <= _TEXTS:
            return self._texts(obj)
        return super().dump(obj)

    @staticmethod
    def _texts(texts: list[str | None]) -> bytes:
        items = [
            "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for text in texts
        ]
        array = f"{{{','.join(items)}}}"
        if "\0" in array:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return array.encode()


_NUMBERS = {int, bool, NoneType}
_TEXTS = {str, NoneType}
_ADAPTERS = AdaptersMap(psycopg.adapters)
_ADAPTERS.register_dumper(list, ColumnDumper)


def _rows_as(row: type[R]) -> AsyncRowFactory[R]:
    """psycopg's class_row, but for the dict of arguments that it makes of each row."""

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[R]:
        names = tuple(column.name for column in cursor.description or ())
        arguments = _in_order_of_fields(row, names)
        if arguments is None:
            return lambda values: row(**dict(zip(names, values, strict=True)))
        return lambda values: row(*arguments(values))

    return factory


@lru_cache(256)
def _in_order_of_fields(
    row: type[Any], names: tuple[str, ...]
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Puts the values of these columns into the order of the first fields; None when they are other ones."""
    fields = list(signature(row).parameters)[: len(names)]
    if sorted(fields) != sorted(names):
        return None
    return itemgetter(*map(names.index, fields)) if len(names) > 1 else tuple


def _can_only_be_read(connection: Connection) -> bool:
    """Whether the server said so with its last answer. After a failover the old one may go on answering reads from
    rows that no longer change, without an error: who only looks for work would never find any again."""
    return "on" in [connection.info.parameter_status(name) for name in _READ_ONLY_PARAMETERS]


_READ_ONLY_PARAMETERS = ("default_transaction_read_only", "in_hot_standby")
"""PostgreSQL 14 and later report their changes unasked."""

_CLOSING_STATES = ("08", "57P", "25006", "53", "XX", "28", "3D")

_ROW_STATES = ("22", "23", "HS", "54")


def _is_about_a_value(error: psycopg.Error) -> bool:
    """The server's refusal, or the driver's own, such as of a NUL in a text, which has no state."""
    return isinstance(error, psycopg.DataError) or (error.sqlstate or "").startswith(_ROW_STATES)


def _translated(error: psycopg.Error) -> Exception:
    """The one table from psycopg's errors to ours."""
    state = error.sqlstate or ""
    if _is_about_a_value(error):
        return RowRefused(str(error))
    if state.startswith("42"):
        return SchemaMismatch(str(error))
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or state.startswith(
        _CLOSING_STATES
    ):
        return DatabaseUnavailable(str(error).strip() or "the connection broke")
    if state.startswith(("57", "55", "25", "40")):
        return DatabaseUnavailable(str(error))
    return error
