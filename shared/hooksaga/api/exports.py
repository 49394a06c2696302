"""Export of a list as CSV or NDJSON: read page by page and sent as it is read, so that neither a transaction nor the
memory grows with the list.

A server that must send an answer as a whole (a Lambda function behind API Gateway) ends an export after some time or
bytes. It names the cursor of the rest in a header, and the file a part.
"""

import csv
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hooksaga.api.answers.answer import Answer, Page
from hooksaga.api.error_code_views import shown_content
from hooksaga.api.http_api import SENT_WHOLE, Caller
from hooksaga.api.json_answers import dump_json
from hooksaga.api.lists import ReadPage
from hooksaga.api.query_parameters import MAX_LIMIT

NEXT_HEADER = "hooksaga-next"
"""Header with the cursor of what an export left out; without it nothing was left out."""

MAX_WHOLE_BYTES = 2 * 1024 * 1024
"""Of 6 MB that a function may answer: JSON escapes each quotation mark once more."""

MAX_WHOLE_SECONDS = 15.0
_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")


class ExportFormat(StrEnum):
    CSV = "csv"
    NDJSON = "ndjson"


MEDIA_TYPES = {
    ExportFormat.CSV: "text/csv; charset=utf-8; header=present",
    ExportFormat.NDJSON: "application/x-ndjson",
}


async def export_response(
    request: Request,
    caller: Caller,
    read: ReadPage,
    wanted: ExportFormat,
    *,
    item: type[Answer],
    name: str,
    cursor: str | None = None,
    limit: int | None = None,
) -> Response:
    """Return all items from the cursor on, or `limit` of them. item: their class. name: of the file.

    The first page is read before the answer begins, so that an error has its status. Raises as `read` does.
    """
    first = await read(cursor, limit or MAX_LIMIT)
    write = _WRITERS[wanted](item.__struct_fields__)

    def text_of(page: Page[Any]) -> str:
        return write([shown_content(caller, one.content()) for one in page.items])

    if limit is not None or request.scope.get(SENT_WHOLE):
        text, rest = await _whole(read, first, text_of, is_page=limit is not None)
        headers = _file(name if rest is None else f"{name}.part", wanted)
        headers |= {} if rest is None else {NEXT_HEADER: rest}
        return Response(text, headers=headers, media_type=MEDIA_TYPES[wanted])
    pages = _pages(read, first, text_of)
    return StreamingResponse(pages, headers=_file(name, wanted), media_type=MEDIA_TYPES[wanted])


def _file(name: str, wanted: ExportFormat) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}.{wanted}"'}


async def _pages(read: ReadPage, page: Page[Any], text_of: Callable[[Page[Any]], str]) -> AsyncIterator[str]:
    """Yield the text of each page. An error ends the connection before the end of the body, so that no client takes a
    part for the whole."""
    yield text_of(page)
    while page.next is not None:
        page = await read(page.next, MAX_LIMIT)
        yield text_of(page)


async def _whole(
    read: ReadPage, page: Page[Any], text_of: Callable[[Page[Any]], str], *, is_page: bool
) -> tuple[str, str | None]:
    """Return the text, and the cursor of what is left out. is_page: of the first page only."""
    ends_at = time.monotonic() + MAX_WHOLE_SECONDS
    texts = [text_of(page)]
    size = len(texts[0])
    while page.next is not None and not is_page and size < MAX_WHOLE_BYTES and time.monotonic() < ends_at:
        page = await read(page.next, MAX_LIMIT)
        texts.append(text_of(page))
        size += len(texts[-1])
    return "".join(texts), page.next


Write = Callable[[Sequence[Mapping[str, Any]]], str]


def _csv_writer(names: Sequence[str]) -> Write:
    is_begun = False

    def write(rows: Sequence[Mapping[str, Any]]) -> str:
        nonlocal is_begun
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\r\n")
        if not is_begun:
            lines.writerow(names)
        is_begun = True
        lines.writerows([_cell(row.get(name)) for name in names] for row in rows)
        return text.getvalue()

    return write


def _cell(value: Any) -> str:
    """Return a value as one cell: nothing for null, JSON for a list or an object. A text that a spreadsheet would take
    for a formula begins with an apostrophe."""
    match value:
        case None:
            return ""
        case str():
            return f"'{value}" if value.startswith(_FORMULA_BEGINS) else value
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _ndjson_writer(names: Sequence[str]) -> Write:
    def write(rows: Sequence[Mapping[str, Any]]) -> str:
        return "".join(f"{dump_json(row)}\n" for row in rows)

    return write


_WRITERS: dict[ExportFormat, Callable[[Sequence[str]], Write]] = {
    ExportFormat.CSV: _csv_writer,
    ExportFormat.NDJSON: _ndjson_writer,
}
