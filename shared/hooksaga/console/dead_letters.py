"""Dead letters: list, details, requeue."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.operations import requeue_for
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.errors import NotFound
from hooksaga.operations import inspect
from hooksaga.operations.inspect import DeadLetterView
from hooksaga.operations.requeue import DeadLetterFilter

PAGE = 50
SHOWN_PAYLOAD = 20_000


def filter_of(fields: Fields, visitor: Visitor) -> DeadLetterFilter:
    return DeadLetterFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        failed_after=fields.moment("after"),
        failed_before=fields.moment("before"),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    items: list[DeadLetterView]
    following: int | None


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    fields = query_fields(request)
    wanted, before_id = filter_of(fields, visitor), fields.number("before_id")

    rows = await services_of(request).admin.run(
        lambda connection: inspect.list_dead_letters(connection, wanted, before_id=before_id, limit=PAGE)
    )
    found = _Found(rows, rows[-1].id if len(rows) == PAGE else None)
    return render(request, visitor, "dead_letters.html", fields=fields, wanted=wanted, found=found)


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


async def _read(request: Request, visitor: Visitor) -> DeadLetterView:
    dead_letter_id = path_id(request, NotFound("dead_letter_not_found", "there is no such dead letter"))
    return await services_of(request).admin.run(
        lambda connection: inspect.show_dead_letter(
            connection, dead_letter_id, tenant_id=visitor.caller.tenant_id
        )
    )
