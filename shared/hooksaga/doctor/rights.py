"""Comparison of the rights in the database with sql/README.md."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from hooksaga.doctor.documented import LETTERS, ColumnRights, Documented, Rights

_WORDS = {letter: word for word, letter in LETTERS.items()}

Facts = dict[str, Any]


def granted_rights(facts: Facts) -> Rights:
    """Return the rights in the catalog, in the notation of the page."""
    granted = defaultdict[tuple[str, str], set[str]](set)
    for row in [*facts["table_rights"], *facts["function_rights"]]:
        right = str(row["right"])
        granted[row["object"], row["role"]].add(LETTERS.get(right, right))
    for table, role, right in granted_columns(facts):
        granted[table, role].add(LETTERS.get(right, right).lower())
    return dict(granted)


def granted_columns(facts: Facts) -> ColumnRights:
    return {(row["object"], row["role"], row["right"]): set(row["columns"]) for row in facts["column_rights"]}


def wrong_rights(wanted: Documented, facts: Facts) -> Iterator[str]:
    """Return one line per difference, with the statement that removes it."""
    found = granted_rights(facts)
    for name, role in sorted(wanted.rights.keys() | found.keys()):
        may = found.get((name, role), set())
        should = wanted.rights.get((name, role), set())
        yield from (_surplus(name, role, letter) for letter in sorted(may - should))
        yield from (_lacking(name, role, letter) for letter in sorted(should - may))
    yield from _wrong_columns(wanted.columns, granted_columns(facts))


def _surplus(name: str, role: str, letter: str) -> str:
    word = _word(letter)
    return f"{role} can {word} on {name} but must not: REVOKE {word} ON {_object(name, letter)} FROM {role}"


def _lacking(name: str, role: str, letter: str) -> str:
    word = _word(letter)
    return f"{role} cannot {word} on {name} but must: GRANT {word} ON {_object(name, letter)} TO {role}"


def _word(letter: str) -> str:
    word = _WORDS.get(letter.upper(), letter)
    return f"{word} (…)" if letter.islower() else word


def _object(name: str, letter: str) -> str:
    return f"FUNCTION {name}" if letter == "X" else name


def _wrong_columns(wanted: ColumnRights, found: ColumnRights) -> Iterator[str]:
    """Compare only tables where both sides have rights on some columns; other differences are already reported."""
    for key in sorted(wanted.keys() & found.keys()):
        (table, role, right) = key
        if surplus := sorted(found[key] - wanted[key]):
            columns = ", ".join(surplus)
            yield f"{role} must not {right} {columns} of {table}: REVOKE {right} ({columns}) ON {table} FROM {role}"
        if lacking := sorted(wanted[key] - found[key]):
            columns = ", ".join(lacking)
            yield f"{role} must {right} {columns} of {table}: GRANT {right} ({columns}) ON {table} TO {role}"
