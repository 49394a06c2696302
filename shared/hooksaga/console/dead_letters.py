"""Dead letters: list, details, requeue."""

from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.dead_letters import DeadLetter
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.operations import dead_letter_pages, requeue_chosen_for, requeue_for
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, back_to_list, export, filter_fault, query_of, ticked
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.operations import inspect
from hooksaga.operations.inspect import DeadLetterView
from hooksaga.operations.list_dead_letters import DeadLetterPage, list_dead_letters
from hooksaga.operations.requeue import DeadLetterFilter

SHOWN_PAYLOAD = 20_000
_FILTERS = ("type", "tenant", "subscription", "error", "requeued", "after", "before")


class RequeuedChoice(StrEnum):
    """Whether dead letters were requeued, as the filter of the page says it."""

    NO = "not yet requeued"
    YES = "requeued"


def _filter(fields: Fields, visitor: Visitor) -> DeadLetterFilter:
    requeued = fields.choice("requeued", RequeuedChoice)
    return DeadLetterFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        failed_after=fields.moment("after"),
        failed_before=fields.moment("before"),
        requeued=None if requeued is None else requeued is RequeuedChoice.YES,
    )


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List dead letters, newest first, or export them."""
    fields = query_fields(request)
    before_id, form = fields.number("before_id"), fields.choice("format", ExportFormat)
    try:
        wanted = _filter(fields, visitor)
    except InvalidInput as error:
        return _list(request, visitor, fields, DeadLetterPage([], None), wrong=error)
    if form is not None:
        read = dead_letter_pages(services_of(request), wanted)
        return await export(request, visitor, read, form, item=DeadLetter, name="dead-letters")
    found = await services_of(request).admin.run(
        lambda connection: list_dead_letters(connection, wanted, before_id=before_id, limit=PAGE)
    )
    return _list(request, visitor, fields, found)


def _list(
    request: Request,
    visitor: Visitor,
    fields: Fields,
    found: DeadLetterPage,
    *,
    wrong: InvalidInput | None = None,
) -> Response:
    given = fields.given(*_FILTERS)
    return render(
        request,
        visitor,
        "dead_letters.html",
        status=422 if wrong else 200,
        fields=fields,
        given=given,
        filters=query_of(given | fields.given("before_id")),
        found=found,
        choices=tuple(RequeuedChoice),
        wrong=filter_fault(request, wrong),
    )


@page("admin")
async def show(request: Request, visitor: Visitor) -> Response:
    row = await _read(request, visitor)
    return render(request, visitor, "dead_letter.html", row=row, shown_payload=SHOWN_PAYLOAD)


@action("admin")
async def requeue(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Requeue it once, then show the event's page."""
    row = await _read(request, visitor)
    await requeue_for(services_of(request), row.id)
    return redirect(request, f"{visitor.place.path}/events/evt_{row.webhook_id.hex}")


@action("admin")
async def requeue_ticked(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Requeue the ticked ones, then show the list again with their number."""
    ids = ticked(form)
    started = await requeue_chosen_for(services_of(request), ids, visitor.caller.tenant_id)
    path = f"{visitor.place.path}/dead-letters"
    return back_to_list(request, path, form, _FILTERS, chosen=len(ids), started=started)


async def _read(request: Request, visitor: Visitor) -> DeadLetterView:
    dead_letter_id = path_id(request, NotFound("dead_letter_not_found", "there is no such dead letter"))
    return await services_of(request).admin.run(
        lambda connection: inspect.show_dead_letter(
            connection, dead_letter_id, tenant_id=visitor.caller.tenant_id
        )
    )
