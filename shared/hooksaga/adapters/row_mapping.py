"""Fast paths for psycopg: list parameters as arrays, and rows as objects."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from operator import itemgetter
from types import NoneType
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncCursor
from psycopg.adapt import AdaptersMap
from psycopg.rows import AsyncRowFactory, RowMaker
from psycopg.types.array import ListDumper

R = TypeVar("R")


class ColumnDumper(ListDumper):
    """Dumps a list as an array, like psycopg, but at once for numbers and texts instead of item by item."""

    def dump(self, obj: list[Any]) -> Any:
        """Raises psycopg.DataError for a NUL in a text, UnicodeEncodeError for an unpaired surrogate."""
        types = set(map(type, obj))
        if types <= _NUMBERS:
            return f"{{{str(obj)[1:-1].replace('None', 'NULL')}}}".encode()
        if types <= _TEXTS:
            return self._texts(obj)
        return super().dump(obj)

    @staticmethod
    def _texts(texts: list[str | None]) -> bytes:
        items = [
            "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for text in texts
        ]
        array = f"{{{','.join(items)}}}"
        if "\0" in array:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return array.encode()


_NUMBERS = {int, bool, NoneType}
_TEXTS = {str, NoneType}
ADAPTERS = AdaptersMap(psycopg.adapters)
ADAPTERS.register_dumper(list, ColumnDumper)


def rows_as(row: type[R]) -> AsyncRowFactory[R]:
    """Like psycopg's class_row, without a dict of arguments per row and an object per column."""

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[R]:
        result = cursor.pgresult
        columns = tuple(result.fname(column) for column in range(result.nfields)) if result else ()
        names, arguments = _in_order_of_fields(row, columns)
        if arguments is None:
            return lambda values: row(**dict(zip(names, values, strict=True)))
        return lambda values: row(*arguments(values))

    return factory


@lru_cache(256)
def _in_order_of_fields(
    row: type[Any], columns: tuple[bytes, ...]
) -> tuple[Sequence[str], Callable[[Sequence[Any]], Sequence[Any]] | None]:
    """Return the names of these columns, and what puts their values into the order of the first fields; None when they
    are other ones."""
    names = [column.decode() for column in columns]
    parameters = signature(row).parameters
    fields = list(parameters)[: len(names)]
    if sorted(fields) != sorted(names) or any(one.kind is one.KEYWORD_ONLY for one in parameters.values()):
        return names, None
    return names, itemgetter(*map(names.index, fields)) if len(names) > 1 else tuple
