"""`migrate` and `audit`, and the database connection of other commands that use it directly."""

import asyncio
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, TypeVar

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import FAILED
from hooksaga.cli.terminal import AsJson, echo, echo_error, printable, show_json

AUDIT_SECONDS = 3600.0
"""Timeout of an audit, which reads whole tables."""

TIMEOUT_SECONDS = 120.0
"""The same time as at other starts of hooksaga: see hooksaga.adapters.migrations."""

T = TypeVar("T")


def migrate(
    patience: Annotated[
        float,
        typer.Option(min=0, max=86_400, help="Seconds to retry while other sessions hold required locks."),
    ] = TIMEOUT_SECONDS,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be done and locked, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Migrate the database to the newest schema.

    Uses HOOKSAGA_DATABASE_URL, or the embedded database, which is created if needed. Producers are not blocked: a step
    that waits for a lock gives up after two seconds, names the blocking session, and is retried. Plain-text header
    values are encrypted if the key is available.

    With --plan the pending migrations are tried on an empty copy of the schema, on a temporary server of this machine.
    """
    if plan:
        from hooksaga.cli.migration_plan import show_plan

        show_plan(as_json)
        return
    applied, sealed = asyncio.run(_migrate(patience))
    if as_json:
        show_json({"applied": applied})
        return
    for name in applied:
        echo(f"applied {name}")
    if sealed:
        echo(f"encrypted the header values of {sealed} subscriptions")
    if not applied and not sealed:
        echo("the schema is up to date")


async def _migrate(patience: float) -> tuple[list[str], int]:
    from hooksaga.adapters.migrations import migrate as run_migrations
    from hooksaga.local.clear_headers import seal_clear_headers
    from hooksaga.local.given_database import open_database
    from hooksaga.local.system import has_secrets_key, secret_box
    from hooksaga.runtime.settings import read_settings

    def tell(wait: str) -> None:
        echo_error(printable(wait))

    settings = read_settings()
    async with open_database(create=True) as address:
        applied = await asyncio.to_thread(run_migrations, address, patience_seconds=patience, tell=tell)
        if not has_secrets_key(settings):
            return applied, 0
        sealed = await seal_clear_headers(address, secret_box(settings))
    if sealed.locked:
        echo_error(
            f"another session has locked {len(sealed.locked)} subscriptions with plain-text header values, which are "
            "not encrypted; run `hooksaga secrets reseal` when the lock is released"
        )
    return applied, sealed.changed


def audit(stack: Stack = None, as_json: AsJson = False) -> None:
    """Check the invariants.

    Reads the tables of the database in HOOKSAGA_DATABASE_URL, or of the embedded one. Exit code 1, and the rows, for
    each violated invariant.
    """
    found = _audit_stack(stack) if stack else asyncio.run(_audit())
    if as_json:
        show_json({"ok": found.good, **asdict(found)})
    else:
        _show_findings(found)
    raise typer.Exit(0 if found.good else FAILED)


@dataclass
class _Audited:
    """Result of an audit. unchecked: invariants whose check exceeded the admin function's timeout."""

    at_rest: bool
    invariants: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unchecked: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not self.unchecked and all(one["ok"] for one in self.invariants)


async def _audit() -> _Audited:
    from hooksaga.adapters.database import Role
    from hooksaga.local.given_database import open_database, run_as
    from hooksaga.operations.audit import audit as run_audit
    from hooksaga.operations.work_state import is_at_rest

    async with open_database() as address:
        patient = replace(address, unit_timeout_seconds=AUDIT_SECONDS)
        at_rest = await run_as(patient, Role.OWNER, is_at_rest)
        findings = await run_as(patient, Role.OWNER, run_audit)
    return _Audited(at_rest, [finding.content() for finding in findings])


def _audit_stack(stack: str) -> _Audited:
    answer = ask_function(stack, "admin", {"action": "audit"})
    found = _Audited(answer["at_rest"])
    while True:
        found.invariants += answer["invariants"]
        left = answer["unchecked"]
        if not answer["invariants"] and left:
            found.unchecked.append(left.pop(0))
        if not left:
            return found
        answer = ask_function(stack, "admin", {"action": "audit", "invariants": left})


def _show_findings(found: _Audited) -> None:
    invariants, unchecked = found.invariants, found.unchecked
    for one in invariants:
        result = "ok, none found" if one["ok"] else f"VIOLATION, {len(one['rows'])} found"
        echo(f"{one['invariant'].replace('_', ' ')}: {result}")
        for row in one["rows"]:
            echo("    " + printable(", ".join(f"{name} {value}" for name, value in row.items())))
    for name in unchecked:
        echo(f"{name.replace('_', ' ')}: NOT CHECKED, the function timed out: see docs/operations/upgrade.md")
    broken = sum(not one["ok"] for one in invariants)
    if broken:
        echo(f"{broken} of {len(invariants)} invariants are violated")
    elif not unchecked:
        echo("All invariants hold.")
    if found.at_rest:
        echo("No process works on this database, so waiting times were not checked.")
