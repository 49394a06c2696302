"""A trial of what is between hooksaga and the server: a pooler that hands on transactions, or shares statements."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import psycopg

from hooksaga.adapters.database_login import DatabaseAddress, Role, connect_as
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import DatabaseUnavailable

_CLIENTS = 3
"""Several clients whose statements have the same names: a pooler that mixes them refuses the second."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """is_pooled: a pooler answers, not the server. Errors are empty if the server's behaviour is kept."""

    is_pooled: bool
    transaction_error: str
    prepared_error: str


async def try_pooling(address: DatabaseAddress) -> Pooling:
    """Run one transaction, and prepare the same statement for several clients. Raises DatabaseUnavailable."""
    statement = load_queries("migrate")["own_pid"]
    try:
        opened = await connect_as(address, Role.OWNER)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(str(error).strip()) from error
    async with opened as connection:
        try:
            async with connection.transaction():
                (pid,) = await (await connection.execute(statement)).fetchone() or (0,)
        except psycopg.Error as error:
            return Pooling(True, str(error).strip(), "")
        is_pooled = connection.info.backend_pid != pid
    return Pooling(is_pooled, "", await _try_prepared(address) if is_pooled else "")


async def _try_prepared(address: DatabaseAddress) -> str:
    statement = load_queries("migrate")["own_pid"]
    async with AsyncExitStack() as stack:
        try:
            for _ in range(_CLIENTS):
                connection = await connect_as(replace(address, prepare=True), Role.OWNER)
                await stack.enter_async_context(connection)
                for _ in range(2):
                    await connection.execute(statement, prepare=True)
        except psycopg.Error as error:
            return str(error).strip()
    return ""
