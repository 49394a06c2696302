"""`migrate` and `audit`, and the way to the database for all commands that go to it themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from infra.commands.deployment import Stack, ask_function
from infra.commands.failures import FAILED, WrongUse
from infra.commands.terminal import AsJson, complain, printable, say, show_json

if TYPE_CHECKING:
    from shared.adapters.database import Connection, DatabaseAddress, Role
    from shared.runtime.settings import Settings

AUDIT_SECONDS = 3600.0
"""An audit reads whole tables, so it may take longer than any unit of work of the pipeline."""

PATIENCE_SECONDS = 120.0
"""As long as every other start of hooksaga waits: see shared.adapters.migrations."""

T = TypeVar("T")


def migrate(
    patience: Annotated[
        float,
        typer.Option(min=0, max=86_400, help="Seconds to keep trying while others hold locks that it needs."),
    ] = PATIENCE_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Bring the database to the newest schema.

    The one of HOOKSAGA_DATABASE_URL, or else the embedded one, which is created when there is none. Producers go on: a
    step that waits for a lock lets go after two seconds, says who is in the way, and is tried again. Header values that
    are stored in clear are sealed, where the key is.
    """
    applied, sealed = asyncio.run(_migrate(patience))
    if as_json:
        show_json({"applied": applied})
        return
    for name in applied:
        say(f"applied {name}")
    if sealed:
        say(f"sealed the header values of {sealed} subscriptions")
    if not applied and not sealed:
        say("nothing to do: the schema is up to date")


async def _migrate(patience: float) -> tuple[list[str], int]:
    from infra.local.system import has_secrets_key, seal_clear_headers, secret_box
    from shared.adapters.migrations import migrate as run_migrations
    from shared.runtime.settings import read_settings

    def tell(wait: str) -> None:
        complain(printable(wait))

    settings = read_settings()
    async with open_database(create=True) as address:
        applied = await asyncio.to_thread(run_migrations, address, patience_seconds=patience, tell=tell)
        has_key = has_secrets_key(settings)
        return applied, await seal_clear_headers(address, secret_box(settings)) if has_key else 0


def audit(stack: Stack = None, as_json: AsJson = False) -> None:
    """Check what must always hold.

    Reads the tables of the database that HOOKSAGA_DATABASE_URL names, or of the embedded one. Exit code 1, and the
    rows, when something does not hold.
    """
    found = _audit_stack(stack) if stack else asyncio.run(_audit())
    if as_json:
        show_json({"ok": found.good, **asdict(found)})
    else:
        _show_findings(found)
    raise typer.Exit(0 if found.good else FAILED)


@dataclass
class _Audited:
    """What an audit found. unchecked: promises that the admin function had no time for, even one by one."""

    at_rest: bool
    promises: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unchecked: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not self.unchecked and all(one["ok"] for one in self.promises)


async def _audit() -> _Audited:
    from shared.adapters.database import Role
    from shared.stages.audit import audit as run_audit
    from shared.stages.work_state import is_at_rest

    async with open_database() as address:
        patient = replace(address, unit_timeout_seconds=AUDIT_SECONDS)
        at_rest = await run_as(patient, Role.OWNER, is_at_rest)
        findings = await run_as(patient, Role.OWNER, run_audit)
    return _Audited(at_rest, [finding.content() for finding in findings])


def _audit_stack(stack: str) -> _Audited:
    answer = ask_function(stack, "admin", {"action": "audit"})
    found = _Audited(answer["at_rest"])
    while True:
        found.promises += answer["promises"]
        left = answer["unchecked"]
        if not answer["promises"] and left:
            found.unchecked.append(left.pop(0))
        if not left:
            return found
        answer = ask_function(stack, "admin", {"action": "audit", "promises": left})


def _show_findings(found: _Audited) -> None:
    promises, unchecked = found.promises, found.unchecked
    for one in promises:
        result = "ok, none found" if one["ok"] else f"BREACH, {len(one['rows'])} found"
        say(f"{one['promise'].replace('_', ' ')}: {result}")
        for row in one["rows"]:
            say("    " + printable(", ".join(f"{name} {value}" for name, value in row.items())))
    for name in unchecked:
        say(f"{name.replace('_', ' ')}: NOT CHECKED, the function has no time for it: see docs/operations")
    broken = sum(not one["ok"] for one in promises)
    if broken:
        say(f"{broken} of {len(promises)} promises are broken")
    elif not unchecked:
        say("Every promise is kept.")
    if found.at_rest:
        say("Nothing is at work on this database, so how long something waits was not judged.")


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
