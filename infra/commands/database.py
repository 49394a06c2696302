"""`migrate`, `audit` and `keys`: commands that go to the database itself, not through the API."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import typer

from infra.commands.failures import FAILED, WrongUse
from infra.commands.terminal import AsJson, printable, say, show_json

if TYPE_CHECKING:
    from shared.adapters.database import Connection, DatabaseAddress, Role
    from shared.runtime.settings import Settings
    from shared.stages.audit import Finding

AUDIT_SECONDS = 3600.0
"""An audit reads whole tables, so it may take longer than any unit of work of the pipeline."""

T = TypeVar("T")


def migrate(as_json: AsJson = False) -> None:
    """Bring the database to the newest schema.

    The one of HOOKSAGA_DATABASE_URL, or else the embedded one, which is created when there is none.
    """
    applied = asyncio.run(_migrate())
    if as_json:
        show_json({"applied": applied})
    elif applied:
        for name in applied:
            say(f"applied {name}")
    else:
        say("nothing to do: the schema is up to date")


async def _migrate() -> list[str]:
    from shared.adapters.migrations import migrate as run_migrations

    async with open_database(create=True) as address:
        return await asyncio.to_thread(run_migrations, address)


def audit(as_json: AsJson = False) -> None:
    """Check what must always hold.

    Reads the tables of the database that HOOKSAGA_DATABASE_URL names, or of the embedded one. Exit code 1, and the
    rows, when something does not hold.
    """
    findings = asyncio.run(_audit())
    breached = [finding for finding in findings if finding.rows]
    if as_json:
        promises = [{"promise": one.promise, "ok": not one.rows, "rows": one.rows} for one in findings]
        show_json({"ok": not breached, "promises": promises})
    else:
        _show_findings(findings)
    raise typer.Exit(FAILED if breached else 0)


async def _audit() -> "list[Finding]":
    from shared.adapters.database import Role
    from shared.stages.audit import audit as run_audit

    async with open_database() as address:
        return await run_as(replace(address, unit_timeout_seconds=AUDIT_SECONDS), Role.OWNER, run_audit)


def _show_findings(findings: "list[Finding]") -> None:
    for finding in findings:
        found = f"BREACH, {len(finding.rows)} found" if finding.rows else "ok, none found"
        say(f"{finding.promise.replace('_', ' ')}: {found}")
        for row in finding.rows:
            say("    " + printable(", ".join(f"{name} {value}" for name, value in row.items())))
    breached = sum(bool(finding.rows) for finding in findings)
    say(f"{breached} of {len(findings)} promises are broken" if breached else "Every promise is kept.")


@asynccontextmanager
async def open_database(*, create: bool = False) -> "AsyncIterator[DatabaseAddress]":
    """The database of HOOKSAGA_DATABASE_URL, or the embedded one, started if need be and then stopped again.

    Raises WrongUse when there is no embedded one yet, unless it may be created.
    """
    from infra.local.postgres import EmbeddedPostgres
    from infra.local.system import database_address, is_in_use
    from shared.adapters.database import Role
    from shared.runtime.settings import read_settings
    from shared.stages.inspect import check_alive

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


def _check_exists(settings: "Settings") -> None:
    if not (settings.data_dir / "postgres").exists():
        raise WrongUse(
            f"there is no database in {settings.data_dir.absolute()}: start `hooksaga up` or `hooksaga migrate` "
            "first, or say where it is with HOOKSAGA_DATA_DIR or HOOKSAGA_DATABASE_URL"
        )


async def run_as(address: "DatabaseAddress", role: "Role", unit: "Callable[[Connection], Awaitable[T]]") -> T:
    """One unit of work, logged in as the role."""
    from shared.adapters.database import Session

    session = Session(address, role)
    try:
        return await session.run(unit)
    finally:
        await session.close()
