"""Common parts of the pages with lists: filters, exports, and rows that are ticked."""

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.answer import Answer
from hooksaga.api.exports import ExportFormat, export_response
from hooksaga.api.http_api import MAX_ID
from hooksaga.api.lists import ReadPage
from hooksaga.console.forms import Fields
from hooksaga.console.pages import FILTER_NAMES, redirect
from hooksaga.console.session import Visitor
from hooksaga.core.errors import InvalidInput

Filter = TypeVar("Filter")

PAGE = 50
TICK = "tick:"
_ID = re.compile("[0-9]{1,19}")


def read_filter(fields: Fields, read: Callable[[Fields], Filter]) -> tuple[Filter | None, list[InvalidInput]]:
    """Return the filter, or what is wrong with each of its fields."""
    wrong: list[InvalidInput] = []
    while True:
        try:
            wanted = read(fields)
        except InvalidInput as error:
            wrong.append(error)
            name = FILTER_NAMES.get(error.field or "", error.field or "")
            if name not in fields.names():
                return None, wrong
            fields = fields.without(name)
        else:
            return (None if wrong else wanted), wrong


async def export(
    request: Request, visitor: Visitor, read: ReadPage, wanted: ExportFormat, *, item: type[Answer], name: str
) -> Response:
    """Return the list as a file."""
    response = await export_response(request, visitor.caller, read, wanted, item=item, name=name)
    response.headers["cache-control"] = "no-store"
    response.headers["x-content-type-options"] = "nosniff"
    return response


def ticked(form: Fields) -> list[int]:
    """Return the ids of the ticked rows, in their order. Raises InvalidInput for anything else."""
    names = [name.removeprefix(TICK) for name in form.names() if name.startswith(TICK)]
    if not all(_ID.fullmatch(name) and 0 < int(name) <= MAX_ID for name in names):
        raise InvalidInput("invalid_parameter", "a ticked row must be an id", field="tick", status=422)
    return sorted(int(name) for name in names)


def back_to_list(
    request: Request, path: str, form: Fields, filters: tuple[str, ...], **more: object
) -> Response:
    """Redirect to the list that a form was sent from, with its filters."""
    given = {
        name: value
        for name, value in parse_qsl(form.raw("filters"))
        if name in (*filters, "cursor", "before_id")
    }
    return redirect(request, path, **given, **more)
