"""Rows of an answer as objects: each value in the field that has its column's name, in whatever order they come."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

import msgspec
import pytest

from hooksaga.adapters.database import Connection, fetch_dicts, fetch_row, fetch_rows, refusals
from hooksaga.core.errors import RowRefused
from tests.database.seed import Seed


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: str = "unset"


class Struct(msgspec.Struct, frozen=True):
    left: int
    right: str = "unset"


@pytest.fixture
def connection(seed: Seed) -> Connection:
    return seed.connection


@pytest.mark.parametrize("row", [Pair, Struct])
@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        ("SELECT 1 AS left, 'a' AS right", 1, "a"),
        ("SELECT 'a' AS right, 1 AS left", 1, "a"),
        ("SELECT 1 AS left", 1, "unset"),
    ],
)
async def test_a_value_goes_where_its_column_is_named(
    connection: Connection, row: type[Pair], query: LiteralString, left: int, right: str
) -> None:
    assert await fetch_rows(connection, query, {}, row) == [row(left, right)]
    assert await fetch_row(connection, query, {}, row) == row(left, right)


@pytest.mark.parametrize("row", [Pair, Struct])
@pytest.mark.parametrize(
    "query",
    ["SELECT 1 AS left, 2 AS other", "SELECT 'a' AS right", "SELECT 1 AS left, 'a' AS right, 2 AS more"],
)
async def test_a_column_without_a_field_or_a_field_without_its_column_is_an_error(
    connection: Connection, row: type[Pair], query: LiteralString
) -> None:
    with pytest.raises(TypeError):
        await fetch_rows(connection, query, {}, row)


async def test_rows_whose_columns_are_not_known_beforehand_are_dicts(connection: Connection) -> None:
    assert await fetch_dicts(connection, "SELECT 1 AS a, NULL AS b", {}) == [{"a": 1, "b": None}]
    assert await fetch_dicts(connection, "SELECT 1 AS a WHERE false", {}) == []


@dataclass(frozen=True, slots=True)
class Column:
    values: list[Any]


ODD_TEXTS = [
    "",
    "NULL",
    "null",
    "{}",
    '"',
    "\\",
    '\\"',
    "a,b",
    " a ",
    "\n\t\r\x01",
    "\x7f\xa0\u2028",
    "\U0001f600",
    "'",
    "%s",
]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [*ODD_TEXTS, None, *ODD_TEXTS]),
        ("text", ["".join(random.Random(seed).choices("ab\"\\{},' \nNUL", k=12)) for seed in range(2000)]),
        ("text", [None, None]),
        ("text", []),
        ("bigint", [0, -1, None, 2**63 - 1, -(2**63)]),
        ("boolean", [True, None, False]),
        ("double precision", [0.5, None, -1e300, float("inf")]),
        ("timestamptz", [None, datetime(2026, 1, 2, 3, 4, 5, 6, UTC)]),
        ("uuid", [UUID(int=7), None]),
        ("jsonb", ['{"a": "\\\\ \\" ,"}', None]),
    ],
)
async def test_a_column_arrives_as_it_was_given(connection: Connection, kind: str, values: list[Any]) -> None:
    query: Any = f"SELECT %(values)s::{kind}[] AS values"
    arrived = await fetch_row(connection, query, {"values": values}, Column)
    wanted = [{"a": '\\ " ,'}, None] if kind == "jsonb" else values
    assert arrived == Column(wanted)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_a_text_that_is_none_is_refused_as_a_row_is(connection: Connection, text: str) -> None:
    with pytest.raises(RowRefused):
        async with refusals():
            await fetch_rows(
                connection, "SELECT %(values)s::text[] AS values", {"values": ["a", text]}, Column
            )
