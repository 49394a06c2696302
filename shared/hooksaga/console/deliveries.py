"""The attempt log with its filters, and one attempt with its request and response."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.attempts import LoggedAttempt
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.attempts import attempt_pages
from hooksaga.api.routes.sagas import resend_chosen_for
from hooksaga.console.events import cursor_of, following_text
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, back_to_list, export, filter_fault, query_of, ticked
from hooksaga.console.pages import action, page, render
from hooksaga.console.session import Visitor
from hooksaga.core.attempts import Outcome, StatusClass, trigger_of
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter, AttemptPage, WholeAttempt

_FILTERS = ("type", "tenant", "subscription", "outcome", "answer", "error", "after", "before")


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List finished attempts, newest first, or export them."""
    fields = query_fields(request)
    before, form = cursor_of(fields), fields.choice("format", ExportFormat)
    try:
        wanted = _filter(fields, visitor)
    except InvalidInput as error:
        return _list(request, visitor, fields, AttemptPage([], None), wrong=error)
    if form is not None:
        read = attempt_pages(services_of(request), wanted)
        return await export(request, visitor, read, form, item=LoggedAttempt, name="deliveries")
    found = await services_of(request).admin.run(
        lambda connection: attempt_log.list_attempts(connection, wanted, before=before, limit=PAGE)
    )
    return _list(request, visitor, fields, found)


def _filter(fields: Fields, visitor: Visitor) -> AttemptFilter:
    return AttemptFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        status_class=fields.choice("answer", StatusClass),
        outcome=fields.choice("outcome", Outcome),
        finished_after=fields.moment("after"),
        finished_before=fields.moment("before"),
    )


def _list(
    request: Request,
    visitor: Visitor,
    fields: Fields,
    found: AttemptPage,
    *,
    wrong: InvalidInput | None = None,
) -> Response:
    given = fields.given(*_FILTERS)
    return render(
        request,
        visitor,
        "deliveries.html",
        status=422 if wrong else 200,
        fields=fields,
        given=given,
        filters=query_of(given | fields.given("cursor")),
        found=found,
        following=following_text(found.following),
        outcomes=tuple(Outcome),
        classes=tuple(StatusClass),
        wrong=filter_fault(request, wrong),
    )


@action("admin")
async def resend_ticked(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Resend the deliveries of the ticked attempts, then show the list again with their number."""
    ids = ticked(form)
    started = await resend_chosen_for(services_of(request), ids, visitor.caller.tenant_id)
    path = f"{visitor.place.path}/deliveries"
    return back_to_list(request, path, form, _FILTERS, chosen=len(ids), started=started)


@page("admin")
async def show(request: Request, visitor: Visitor) -> Response:
    """Show one attempt. The response is always shown as text."""
    attempt_id = path_id(request, NotFound("attempt_not_found", "there is no such attempt"))
    attempt = await services_of(request).admin.run(
        lambda connection: attempt_log.show_attempt(
            connection, attempt_id, tenant_id=visitor.caller.tenant_id
        )
    )
    return render(
        request,
        visitor,
        "delivery.html",
        attempt=attempt,
        headers=attempt.request_headers or {},
        trigger=_trigger(attempt),
        resendable=attempt.saga_status in (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED),
    )


def _trigger(attempt: WholeAttempt) -> str:
    return trigger_of(
        attempt.attempt_number,
        requeued_from=attempt.requeued_from,
        resent_from=attempt.resent_from,
        bulk_operation_id=attempt.bulk_operation_id,
    )
