"""Answers of lists: a page of JSON, or an export."""

from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.answer import Answer
from hooksaga.api.exports import ExportFormat, export_response
from hooksaga.api.http_api import Caller
from hooksaga.api.json_answers import answer_response
from hooksaga.api.lists import ReadPage
from hooksaga.api.query_parameters import MAX_LIMIT, query_choice, query_integer, query_limit

FORMAT = "format"


class ListFormat(StrEnum):
    """Forms of a list."""

    JSON = "json"
    CSV = ExportFormat.CSV.value
    NDJSON = ExportFormat.NDJSON.value


async def list_response(
    request: Request, caller: Caller, read: ReadPage, *, item: type[Answer], name: str
) -> Response:
    """Return the page, or the export, that the request asks for. item: the class of the items."""
    wanted = query_choice(request, FORMAT, ListFormat) or ListFormat.JSON
    cursor = request.query_params.get("cursor")
    if wanted is ListFormat.JSON:
        return answer_response(await read(cursor, query_limit(request)), shown_to=caller)
    return await export_response(
        request,
        caller,
        read,
        ExportFormat(wanted),
        item=item,
        name=name,
        cursor=cursor,
        limit=query_integer(request, "limit", 1, MAX_LIMIT),
    )
