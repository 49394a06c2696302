"""The list of events, by any filter."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers import events as answers
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import MAX_ID, Caller, authorize, services_of
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import ReadPage, check_list_parameters
from hooksaga.api.query_parameters import (
    MAX_LONG_TEXT,
    query_choice,
    query_integer,
    query_moment,
    query_tenant,
    query_text,
)
from hooksaga.api.routes.attempts import position_text, read_position
from hooksaga.api.services import Services
from hooksaga.core.attribute_search import read_attribute
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_status import EventStatus
from hooksaga.operations import find_events
from hooksaga.operations.find_events import EventFilter

_FILTERS = (
    "search",
    "tenant_id",
    "event_type",
    "idempotency_key",
    "attribute",
    "status",
    "subscription_id",
    "error_code",
)
MAX_ATTRIBUTE = 265
"""A name of 64 characters, a colon, and a value of 200."""
_TIMES = ("accepted_after", "accepted_before")


async def list_events(request: Request) -> Response:
    """List events, newest first, by any of the filters. `next` may follow a short page."""
    caller = await authorize(request, "admin")
    check_list_parameters(request, FORMAT, *_FILTERS, *_TIMES)
    wanted = _filter(request, caller)
    read = event_pages(services_of(request), wanted)
    return await list_response(request, caller, read, item=answers.FoundEvent, name="events")


def event_pages(services: Services, wanted: EventFilter) -> ReadPage:
    """Return the reader of the pages of this list."""

    async def read(cursor: str | None, limit: int) -> answers.FoundEventList:
        before = read_position(cursor)
        page = await services.admin.run(find_events.find_events, wanted, before=before, limit=limit)
        items = [answers.FoundEvent.of(row, id=event_id_text(row.webhook_id)) for row in page.items]
        return answers.FoundEventList(items, position_text(page.following))

    return read


def _filter(request: Request, caller: Caller) -> EventFilter:
    attribute = query_text(request, "attribute", MAX_ATTRIBUTE)
    return EventFilter(
        tenant_id=query_tenant(request, caller.tenant_id),
        event_type=query_text(request, "event_type"),
        idempotency_key=query_text(request, "idempotency_key", MAX_LONG_TEXT),
        status=query_choice(request, "status", EventStatus),
        subscription_id=query_integer(request, "subscription_id", 1, MAX_ID),
        error_code=checked_code_filter(caller, query_text(request, "error_code")),
        accepted_after=query_moment(request, "accepted_after"),
        accepted_before=query_moment(request, "accepted_before"),
        attribute=None if attribute is None else read_attribute(attribute),
        search=query_text(request, "search", MAX_LONG_TEXT),
    )
