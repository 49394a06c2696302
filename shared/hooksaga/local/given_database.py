"""The database that commands work on: the one of HOOKSAGA_DATABASE_URL, or the embedded one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.system import database_address, is_in_use
from hooksaga.operations.inspect import check_alive
from hooksaga.runtime.settings import Settings, read_settings

T = TypeVar("T")


class NoDatabaseYet(RuntimeError):
    """There is no embedded database in the data folder. The message says what makes one."""


@asynccontextmanager
async def open_database(*, create: bool = False) -> AsyncIterator[DatabaseAddress]:
    """The database of HOOKSAGA_DATABASE_URL, or the embedded one, started if need be and then stopped again.

    Raises NoDatabaseYet when there is no embedded one yet, unless it may be created.
    """
    settings = read_settings()
    if settings.database_url is None and not create:
        _check_exists(settings)
    was_running = EmbeddedPostgres(settings.data_dir).is_running()
    address, embedded = await asyncio.to_thread(database_address, settings)
    try:
        await run_as(address, Role.OWNER, check_alive)
        yield address
    finally:
        if embedded and not was_running and not await is_in_use(address):
            await asyncio.to_thread(embedded.stop)


def _check_exists(settings: Settings) -> None:
    if not (settings.data_dir / "postgres").exists():
        raise NoDatabaseYet(
            f"there is no database in {settings.data_dir.absolute()}: start `hooksaga up` or `hooksaga migrate` "
            "first, or say where it is with HOOKSAGA_DATA_DIR or HOOKSAGA_DATABASE_URL"
        )


async def run_as(address: DatabaseAddress, role: Role, unit: Callable[[Connection], Awaitable[T]]) -> T:
    """One unit of work, logged in as the role."""
    session = Session(address, role)
    try:
        return await session.run(unit)
    finally:
        await session.close()
