"""Required state of a database: rights from sql/README.md, migrations and guards from the schema files."""

import re
from dataclasses import dataclass
from functools import cache

from hooksaga.adapters.migrations import SQL_DIR, migration_files, migration_text

RIGHTS_PAGE = SQL_DIR / "README.md"

LETTERS = {"SELECT": "S", "INSERT": "I", "UPDATE": "U", "DELETE": "D", "EXECUTE": "X"}

Rights = dict[tuple[str, str], set[str]]
"""(object, role) -> letters of the page; a lower-case letter means some columns only. Other rights by name."""

ColumnRights = dict[tuple[str, str, str], set[str]]
"""(table, role, right) -> columns."""

_CREATED = re.compile(r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+)\s[^;]*?\sON (\w+)", re.MULTILINE)
_DROPPED = re.compile(r"^DROP TRIGGER (?:IF EXISTS )?(\w+) ON (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Documented:
    """The documented state. roles: in the order of the page's columns."""

    roles: tuple[str, ...]
    rights: Rights
    columns: ColumnRights
    migrations: tuple[str, ...]
    triggers: frozenset[tuple[str, str]]


@cache
def documented() -> Documented:
    head, *rows = table_under("Who may do what")
    return Documented(tuple(head[1:]), _rights(head, rows), _columns(), _migrations(), _triggers())


def table_under(heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, including its header, without markup."""
    text = RIGHTS_PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    lines = re.findall(r"^\|(.*)\|$", text.split("\n## ", 1)[0], re.MULTILINE)
    rows = [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]
    return [row for row in rows if set("".join(row)) - set("- :")]


def _rights(head: list[str], rows: list[list[str]]) -> Rights:
    return {
        (row[0], role): set(cell.replace(" ", ""))
        for row in rows
        for role, cell in zip(head[1:], row[1:], strict=True)
        if cell
    }


def _columns() -> ColumnRights:
    _, *rows = table_under("Rights on some columns only")
    return {(table, role, right): set(columns.split(", ")) for table, role, right, columns in rows}


def _migrations() -> tuple[str, ...]:
    return tuple(path.stem for path in migration_files())


def _triggers() -> frozenset[tuple[str, str]]:
    found = set[tuple[str, str]]()
    for path in migration_files():
        text = migration_text(path)
        found -= {(table, name) for name, table in _DROPPED.findall(text)}
        found |= {(table, name) for name, table in _CREATED.findall(text)}
    return frozenset(found)
