"""The catalogue of event types: a list, and one type with its schema and its sample. Subscribers see the types that
take events."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.routes.event_types import name_of
from hooksaga.console.forms import query_fields
from hooksaga.console.lists import PAGE
from hooksaga.console.pages import formatted, page, render
from hooksaga.console.session import Place, Visitor
from hooksaga.operations import event_types
from hooksaga.operations.event_types import NamedType

SHOWN_TEXT = 20_000
SCOPES = ("subscriptions:write", "admin")


@page(*SCOPES)
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List event types, newest first."""
    before_id = query_fields(request).number("before_id")
    archived = False if visitor.place is Place.PORTAL else None
    rows = await services_of(request).subscriptions.run(
        event_types.list_event_types, archived=archived, before_id=before_id, limit=PAGE
    )
    following = rows[-1].id if len(rows) == PAGE else None
    return render(request, visitor, "event_types.html", rows=rows, following=following)


@page(*SCOPES)
async def show(request: Request, visitor: Visitor) -> Response:
    name = name_of(request)
    row = await services_of(request).subscriptions.run(event_types.show_event_type, name)
    if row.archived and visitor.place is Place.PORTAL:
        raise event_types.missing(name)
    return render(
        request,
        visitor,
        "event_type.html",
        row=row,
        rules=row.rules,
        schema=formatted(row.schema or ""),
        sample=formatted(row.sample or ""),
        shown_text=SHOWN_TEXT,
    )


async def offered_types(request: Request) -> list[NamedType]:
    """Return the types that the form of a subscription offers."""
    return await services_of(request).subscriptions.run(event_types.name_event_types)
