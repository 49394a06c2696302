"""Erasures: the list, and the form, which takes effect only when the event or tenant is typed a second time."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import ERASE_SCOPE, services_of
from hooksaga.console.forms import EMPTY_FIELDS, Fields, checked, query_fields
from hooksaga.console.lists import PAGE
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.erasures import NewErasure
from hooksaga.core.errors import HooksagaError, InvalidInput, NotFound
from hooksaga.operations import erasures


@page(ERASE_SCOPE, "admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    fields = query_fields(request)
    given = Fields({"event_id": fields.raw("event"), "tenant_id": fields.raw("tenant")})
    return await _show(request, visitor, form=given, before_id=fields.number("before_id"))


@action(ERASE_SCOPE)
async def start(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Start the erasure if what is to be erased was typed twice; otherwise show the form with its error."""
    asking = visitor.requester
    try:
        wanted = checked(NewErasure, _content(form))
        if form.raw("confirmation").strip() != (wanted.event_id or wanted.tenant_id):
            message = "confirmation: type the event or the tenant once more, exactly"
            raise InvalidInput("invalid_field", message, field="confirmation", status=422)
        await services_of(request).admin.run(erasures.start_erasure, wanted, asking)
    except (InvalidInput, NotFound) as error:
        return await _show(request, visitor, form=form, wrong=error)
    return redirect(request, "/console/erasures")


def _content(form: Fields) -> dict[str, Any]:
    given = {name: form.text(name) for name in ("event_id", "tenant_id", "attribute")}
    return {
        **{name: value for name, value in given.items() if value is not None},
        "reason": form.raw("reason").strip(),
    }


async def _show(
    request: Request,
    visitor: Visitor,
    *,
    form: Fields = EMPTY_FIELDS,
    before_id: int | None = None,
    wrong: HooksagaError | None = None,
) -> Response:
    rows = await services_of(request).admin.run(
        erasures.list_erasures, tenant_id=visitor.caller.tenant_id, before_id=before_id, limit=PAGE
    )
    return render(
        request,
        visitor,
        "erasures.html",
        rows=rows,
        form=form,
        following=rows[-1].id if len(rows) == PAGE else None,
        wrong=wrong,
        back="/console/erasures",
    )
