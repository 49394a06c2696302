"""Event search, and the timeline of one event."""

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.adapters.database import Connection
from hooksaga.api.answers.events import FoundEvent
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import services_of
from hooksaga.api.query_parameters import MAX_LONG_TEXT
from hooksaga.api.routes.attempts import position_text, read_position
from hooksaga.api.routes.events import webhook_id_of
from hooksaga.api.routes.find_events import MAX_ATTRIBUTE, event_pages
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, export, read_filter
from hooksaga.console.pages import page, render
from hooksaga.console.session import Visitor
from hooksaga.core.attempts import trigger_of
from hooksaga.core.attribute_search import read_attribute
from hooksaga.core.event_attributes import all_attributes, values_by_name
from hooksaga.core.event_status import EventStatus
from hooksaga.core.filters import value_text
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect
from hooksaga.operations.attempt_log import Position
from hooksaga.operations.explain import Routing, SagaStanding, explain_event
from hooksaga.operations.find_events import EventFilter, find_events
from hooksaga.operations.inspect import EventView, SagaView

DELIVERIES_COUNTED = 100
"""Limit of deliveries per listed event, as in find_events."""

SHOWN_SAGAS = 50
SHOWN_DECISIONS = 100
SHOWN_PAYLOAD = 20_000
SHOWN_BODY = 2_000
_FILTERS = ("type", "tenant", "key", "attribute", "status", "subscription", "error", "after", "before")


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List events by any field, newest first, or export them."""
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (_filter(typed, visitor), cursor_of(typed), typed.choice("format", ExportFormat)),
    )
    wanted, found = EventFilter(), None
    if asked is not None:
        wanted, before, form = asked
        if form is not None:
            read = event_pages(services_of(request), wanted)
            return await export(request, visitor, read, form, item=FoundEvent, name="events")
        found = await services_of(request).admin.run(find_events, wanted, before=before, limit=PAGE)
    return render(
        request,
        visitor,
        "events.html",
        fields=fields,
        given=fields.given(*_FILTERS),
        found=found,
        following=position_text(found.following) if found else None,
        most=DELIVERIES_COUNTED,
        statuses=tuple(EventStatus),
        searches_attempts=wanted.searches_attempts,
        is_recent_only=wanted.status is not None and wanted.status.is_recent_only,
        wrong=wrong,
    )


def _filter(fields: Fields, visitor: Visitor) -> EventFilter:
    attribute = fields.text("attribute", MAX_ATTRIBUTE)
    after, before = fields.period()
    return EventFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        event_type=fields.text("type"),
        idempotency_key=fields.text("key", MAX_LONG_TEXT),
        attribute=None if attribute is None else read_attribute(attribute),
        status=fields.choice("status", EventStatus),
        subscription_id=fields.number("subscription"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        accepted_after=after,
        accepted_before=before,
    )


def cursor_of(fields: Fields) -> Position | None:
    return read_position(fields.text("cursor"))


@page("admin", "events:write")
async def show(request: Request, visitor: Visitor) -> Response:
    webhook_id = webhook_id_of(str(request.path_params["id"]))
    tenant_id = visitor.caller.tenant_id
    attempt_limit = services_of(request).settings.max_retry_limit

    async def read(connection: Connection) -> tuple[EventView, Routing]:
        # Routing first: with the deliveries read before it, an event that is routed in between would have none, and the
        # page would not renew itself.
        routing = await explain_event(
            connection,
            webhook_id,
            tenant_id=tenant_id,
            default_attempt_limit=attempt_limit,
            limit=SHOWN_DECISIONS,
        )
        view = await inspect.show_event(connection, webhook_id, tenant_id=tenant_id, most_sagas=SHOWN_SAGAS)
        return view, routing

    view, routing = await services_of(request).admin.run(read)
    standings = {one.saga.id: one.saga for one in routing.decisions if one.saga is not None}
    is_open = _is_open(view, routing)
    return render(
        request,
        visitor,
        "event.html",
        event=view,
        attributes=values_by_name(all_attributes(view.attributes, view.extracted_attributes)),
        given=values_by_name(view.attributes),
        routing=routing,
        standings=standings,
        hosts={one.subscription_id: one.callback_url for one in routing.decisions},
        is_open=is_open,
        waits=_waits,
        value_text=value_text,
        trigger=_trigger,
        shown_payload=SHOWN_PAYLOAD,
        shown_body=SHOWN_BODY,
        shown_sagas=SHOWN_SAGAS,
    )


def _is_open(view: EventView, routing: Routing) -> bool:
    ended = (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED)
    return routing.state == "waiting" or any(saga.status not in ended for saga in view.sagas)


def _waits(saga: SagaView | SagaStanding) -> datetime | None:
    waiting = saga.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY)
    return saga.next_attempt_at if waiting else None


def _trigger(saga: SagaView, attempt: inspect.Attempt) -> str:
    return trigger_of(
        attempt.attempt_number,
        requeued_from=saga.requeued_from,
        resent_from=saga.resent_from,
        bulk_operation_id=saga.bulk_operation_id,
    )
