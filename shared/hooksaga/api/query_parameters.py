"""Query parameters: pages of lists, and filters. Unknown, repeated and out-of-range parameters are refused."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from starlette.requests import Request

from hooksaga.api.cursors import ID_CURSOR, read_cursor, write_cursor
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_tenant
from hooksaga.core.moments import read_moment

DEFAULT_LIMIT = 50
MAX_LIMIT = 250
NOT_UTF8 = "\ufffd"
"""Replacement of bytes that are not UTF-8 in a decoded query string."""


def query_text_pattern(most: int) -> str:
    """Return the pattern of a text in a query string: no control characters, and no NOT_UTF8."""
    return rf"[^\u0000-\u001f\u007f\ufffd]{{1,{most}}}"


MAX_TEXT, MAX_LONG_TEXT = 100, 255

_WHOLE_NUMBER = re.compile(r"([0-9]{1,19})(?:[.]0{1,19})?")
"""In a query string; 14.0 is the number that it is in a body."""

Choice = TypeVar("Choice", bound=StrEnum)


class _Row(Protocol):
    @property
    def id(self) -> int: ...


def next_cursor(rows: Sequence[_Row], limit: int) -> str | None:
    """Return the cursor of the page after these rows; None after the last page."""
    return write_cursor(rows[-1].id) if len(rows) == limit else None


def id_before(cursor: str | None) -> int | None:
    """Return the id below which the page at a cursor by next_cursor begins. Raises InvalidInput for any other text."""
    return None if cursor is None else read_cursor(cursor, ID_CURSOR)[0]


def query_limit(request: Request) -> int:
    """Read the number of requested rows. Raises InvalidInput."""
    return query_integer(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT


def check_parameters(request: Request, *known: str) -> None:
    """Raise InvalidInput for a query parameter that is unknown, repeated, or not UTF-8."""
    given = request.query_params.multi_items()
    for name, value in given:
        if name not in known:
            raise InvalidInput(
                "unknown_parameter", f"unknown query parameter {name!r}", field=name, status=422
            )
        if sum(other == name for other, _ in given) > 1:
            raise _invalid(name, "must be sent once")
        if NOT_UTF8 in value:
            raise _invalid(name, "must be UTF-8")


def _invalid(name: str, rule: str) -> InvalidInput:
    return InvalidInput("invalid_parameter", f"{name} {rule}", field=name, status=422)


def query_integer(request: Request, name: str, least: int, most: int) -> int | None:
    """Read an integer query parameter within bounds, or None without it. Raises InvalidInput."""
    text = request.query_params.get(name)
    if text is None:
        return None
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None or not least <= int(found[1]) <= most:
        raise _invalid(name, f"must be an integer from {least} to {most}")
    return int(found[1])


def query_text(request: Request, name: str, most: int = MAX_TEXT) -> str | None:
    """Read a text query parameter, or None without it. Raises InvalidInput for text that can never be stored."""
    value = request.query_params.get(name)
    if value is not None and not re.fullmatch(query_text_pattern(most), value):
        raise _invalid(name, f"must have 1 to {most} characters and no control characters")
    return value


def query_tenant(request: Request, allowed: str | None) -> str | None:
    """Read the tenant whose rows are wanted: `allowed` without a parameter, None for all tenants. Raises InvalidInput
    `tenant_not_allowed` for another tenant than `allowed`."""
    asked = request.query_params.get("tenant_id")
    return allowed if asked is None else check_tenant(asked, allowed)


def query_moment(request: Request, name: str) -> datetime | None:
    """Read a time query parameter, or None without it. Raises InvalidInput."""
    value = request.query_params.get(name)
    if value is None:
        return None
    try:
        return read_moment(value)
    except ValueError as error:
        raise _invalid(name, str(error)) from None


def query_choice(request: Request, name: str, choices: type[Choice]) -> Choice | None:
    """Read a query parameter that is one of the words, or None without it. Raises InvalidInput."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return choices(text)
    except ValueError:
        raise _invalid(name, f"must be one of: {', '.join(choices)}") from None


def query_flag(request: Request, name: str) -> bool | None:
    """Read a query parameter that is true or false, or None without it. Raises InvalidInput."""
    text = request.query_params.get(name)
    if text not in (None, "true", "false"):
        raise _invalid(name, "must be true or false")
    return None if text is None else text == "true"
