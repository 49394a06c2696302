"""`migrate --plan`."""

import asyncio
from typing import TYPE_CHECKING, Any

from hooksaga.cli.terminal import echo, printable, show_json

if TYPE_CHECKING:
    from hooksaga.local.migration_plan import Plan

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def show_plan(as_json: bool) -> None:
    """Print what `migrate` would do. The database is only read."""
    plan = asyncio.run(_plan())
    content = plan.content()
    if as_json:
        show_json(content)
        return
    if plan.unknown:
        echo(f"unknown to this version, and ignored: {', '.join(plan.unknown)}")
    if not plan.rehearsed:
        echo("the schema is up to date")
        return
    count = len(plan.rehearsed)
    echo(
        f"{count} migration{'s' if count > 1 else ''} to run on PostgreSQL {printable(plan.target.version)}."
    )
    echo(f"Nothing was changed: tried on an empty copy of the schema, on PostgreSQL {plan.tried_on}.")
    for one in content["migrations"]:
        _show_migration(one)


async def _plan() -> "Plan":
    from hooksaga.local.given_database import open_database
    from hooksaga.local.migration_plan import plan_migrations, read_target

    async with open_database() as address:
        target = await read_target(address)
    return await asyncio.to_thread(plan_migrations, target)


def _show_migration(one: dict[str, Any]) -> None:
    how = "one transaction" if one["in_transaction"] else "one index CONCURRENTLY, outside of a transaction"
    echo()
    echo(f"{one['name']}: {how}")
    _show_lines("runs", one["commands"])
    _show_lines("adds", one["adds"])
    _show_lines("takes away", one["takes_away"])
    _show_lines("locks", [_lock_text(table) for table in one["tables"]])


def _show_lines(heading: str, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        echo(f"  {heading if number == 0 else '':<10}  {printable(line)}")


def _lock_text(table: dict[str, Any]) -> str:
    rows = "" if table["estimated_rows"] is None else f", about {table['estimated_rows']:,} rows"
    words = f"{table['name']} ({_size(table['bytes'])}{rows}): {table['lock']}"
    if table["rewrites"]:
        words += ", rewrites the table or an index of it"
    elif table["reads_all_rows"]:
        words += ", reads all rows"
    if table["blocks_for_all_rows"]:
        return f"{words}, BLOCKS {table['blocks'].upper()} FOR AS LONG AS THAT TAKES"
    return (
        f"{words}, blocks {table['blocks']} for a moment"
        if table["blocks"]
        else f"{words}, blocks no reader or writer"
    )


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError("unreachable: the last unit returns")
