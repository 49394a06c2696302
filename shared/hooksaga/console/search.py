"""The search box of every page: an id, a key or a value leads to its page, or to a list."""

from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.adapters.database import Connection
from hooksaga.api.http_api import services_of
from hooksaga.api.query_parameters import MAX_LONG_TEXT
from hooksaga.console.forms import query_fields
from hooksaga.console.pages import page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_ids import event_id_text, short_event_id
from hooksaga.operations.find_events import EventFilter, FoundEvent, find_events
from hooksaga.operations.search import Kind, Numbered, things_of_number

MAX_FOUND = 50
EVENT = "event"

_SCOPES = {
    EVENT: ("admin", "events:write"),
    Kind.SUBSCRIPTION: ("subscriptions:write",),
    Kind.SAGA: ("admin", "events:write"),
    Kind.DEAD_LETTER: ("admin",),
    Kind.ATTEMPT: ("admin",),
}
"""Scopes of which a key needs one to open the page of a thing."""


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that was found. path: its page, below that of the console or portal. at: a time to tell it by."""

    kind: str
    name: str
    path: str
    tenant_id: str
    label: str
    at: datetime


@page()
async def search(request: Request, visitor: Visitor) -> Response:
    """Redirect to the only match, or list all."""
    fields = query_fields(request)
    matches: list[Match] = []
    wrong: InvalidInput | None = None
    try:
        text = fields.text("q", MAX_LONG_TEXT)
        matches = [] if text is None else await _matches(request, visitor, text)
    except InvalidInput as error:
        wrong = error
    if len(matches) == 1:
        return _to(request, visitor, matches[0])
    return render(
        request, visitor, "search.html", fields=fields, matches=matches, most=MAX_FOUND, wrong=wrong
    )


async def _matches(request: Request, visitor: Visitor, text: str) -> list[Match]:
    tenant_id = visitor.caller.tenant_id
    may_open_events = visitor.may(*_SCOPES[EVENT])

    async def read(connection: Connection) -> tuple[list[FoundEvent], list[Numbered]]:
        wanted = EventFilter(tenant_id=tenant_id, search=text)
        events = (await find_events(connection, wanted, limit=MAX_FOUND)).items if may_open_events else []
        return events, await things_of_number(connection, text, tenant_id=tenant_id)

    events, things = await services_of(request).admin.run(read)
    numbered = [_numbered(one) for one in things if visitor.may(*_SCOPES[Kind(one.kind)])]
    return [*(_event(one) for one in events), *numbered]


def _event(one: FoundEvent) -> Match:
    name, path = short_event_id(one.webhook_id), f"/events/{event_id_text(one.webhook_id)}"
    return Match(EVENT, name, path, one.tenant_id, one.event_type, one.created_at)


def _numbered(one: Numbered) -> Match:
    paths = {
        Kind.SUBSCRIPTION: f"/subscriptions/{one.id}",
        Kind.DEAD_LETTER: f"/dead-letters/{one.id}",
        Kind.ATTEMPT: f"/deliveries/{one.id}",
    }
    path = paths.get(Kind(one.kind)) or f"/events/{_event_id(one)}#saga-{one.id}"
    return Match(one.kind, str(one.id), path, one.tenant_id, one.label, one.at)


def _event_id(one: Numbered) -> str:
    assert one.webhook_id is not None, "a saga has an event"
    return event_id_text(one.webhook_id)


def _to(request: Request, visitor: Visitor, match: Match) -> Response:
    path, _, place = match.path.partition("#")
    response = redirect(request, visitor.place.path + path)
    if place:
        response.headers["location"] += f"#{place}"
    return response
