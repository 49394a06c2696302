"""Dead letters: list, details, requeue."""

from enum import StrEnum
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.dead_letters import DeadLetter
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.operations import dead_letter_pages, requeue_chosen_for, requeue_for
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, back_to_list, export, read_filter, ticked
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Place, Visitor
from hooksaga.core.errors import NotFound
from hooksaga.operations import inspect
from hooksaga.operations.inspect import DeadLetterView
from hooksaga.operations.list_dead_letters import DeadLetterPage, count_dead_letters, list_dead_letters
from hooksaga.operations.requeue import DeadLetterFilter

SHOWN_PAYLOAD = 20_000
_FILTERS = ("type", "tenant", "subscription", "error", "state", "after", "before")


class DeadLetterChoice(StrEnum):
    """Which dead letters the page lists: those that stand, as a requeue of all would take them, or requeued ones."""

    STANDING = "standing"
    REQUEUED = "requeued"


def _filter(fields: Fields, visitor: Visitor) -> DeadLetterFilter:
    state = fields.choice("state", DeadLetterChoice)
    after, before = fields.period()
    return DeadLetterFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        failed_after=after,
        failed_before=before,
        requeued=True if state is DeadLetterChoice.REQUEUED else None,
        standing=state is DeadLetterChoice.STANDING,
    )


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List dead letters, newest first, or export them."""
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (
            _filter(typed, visitor),
            typed.number("before_id"),
            typed.choice("format", ExportFormat),
        ),
    )
    found, count = DeadLetterPage([], None), None
    if asked is not None:
        wanted, before_id, form = asked
        if form is not None:
            read = dead_letter_pages(services_of(request), wanted)
            return await export(request, visitor, read, form, item=DeadLetter, name="dead-letters")
        run = services_of(request).admin.run
        found = await run(list_dead_letters, wanted, before_id=before_id, limit=PAGE)
        if visitor.place is Place.CONSOLE:  # the portal's list shows no count
            count = await run(count_dead_letters, wanted)
    given = fields.given(*_FILTERS)
    return render(
        request,
        visitor,
        "dead_letters.html",
        fields=fields,
        given=given,
        filters=urlencode(given | fields.given("before_id")),
        found=found,
        count=count,
        choices=tuple(DeadLetterChoice),
        wrong=wrong,
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
        inspect.show_dead_letter, dead_letter_id, tenant_id=visitor.caller.tenant_id
    )
