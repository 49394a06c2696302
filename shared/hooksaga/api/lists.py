"""Answers of lists, page by page."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.answer import Page
from hooksaga.api.http_api import Caller
from hooksaga.api.json_answers import answer_response
from hooksaga.api.query_parameters import check_parameters, query_limit

ReadPage = Callable[[str | None, int], Awaitable[Page[Any]]]
"""Reads the page at a cursor, None for the first one, with at most so many items. Raises InvalidInput for a cursor that
is not of this list."""


def check_list_parameters(request: Request, *filters: str) -> None:
    """Raise InvalidInput for a query parameter that a list with these filters does not have."""
    check_parameters(request, "limit", "cursor", *filters)


async def list_response(request: Request, caller: Caller, read: ReadPage) -> Response:
    """Return the page that the request asks for."""
    page = await read(request.query_params.get("cursor"), query_limit(request))
    return answer_response(page, shown_to=caller)
