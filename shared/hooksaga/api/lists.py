"""Readers of lists, page by page, for an answer of the API, an export, or a page of the console."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request

from hooksaga.api.answers.answer import Page
from hooksaga.api.query_parameters import check_parameters

ReadPage = Callable[[str | None, int], Awaitable[Page[Any]]]
"""Reads the page at a cursor, None for the first one, with at most so many items. Raises InvalidInput for a cursor that
is not of this list."""


def check_list_parameters(request: Request, *filters: str) -> None:
    """Raise InvalidInput for a query parameter that a list with these filters does not have."""
    check_parameters(request, "limit", "cursor", *filters)
