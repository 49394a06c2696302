"""The database of commands: that of HOOKSAGA_DATABASE_URL, or the embedded one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Concatenate, ParamSpec, TypeVar

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.system import database_address, is_in_use
from hooksaga.operations.inspect import check_alive
from hooksaga.runtime.settings import Settings, read_settings

P = ParamSpec("P")
T = TypeVar("T")


class NoDatabaseYet(RuntimeError):
    """The data folder has no embedded database. The message names the command that creates one."""


@asynccontextmanager
async def open_database(*, create: bool = False) -> AsyncIterator[DatabaseAddress]:
    """Open the database of HOOKSAGA_DATABASE_URL, or the embedded one, which is started and stopped if needed.

    Raises NoDatabaseYet if there is no embedded one, unless it may be created.
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


async def run_as(
    address: DatabaseAddress,
    role: Role,
    unit: Callable[Concatenate[Connection, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a unit of work on a connection of its own; arguments as in `Session.run`."""
    async with Session(address, role) as session:
        return await session.run(unit, *args, **kwargs)
