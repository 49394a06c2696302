"""Rows of an answer as objects: each value in the field that has its column's name, in whatever order they come."""

from dataclasses import dataclass
from typing import LiteralString

import msgspec
import pytest

from shared.adapters.database import Connection, fetch_dicts, fetch_row, fetch_rows
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
