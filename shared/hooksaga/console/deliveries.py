"""The attempt log with its filters, and one attempt with its request and response."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.adapters.database import Connection
from hooksaga.api.answers.attempts import LoggedAttempt
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.attempts import attempt_pages, position_text
from hooksaga.api.routes.sagas import resend_chosen_for
from hooksaga.console.events import SHOWN_PAYLOAD, cursor_of
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, back_to_list, export, read_filter, ticked
from hooksaga.console.pages import action, page, render
from hooksaga.console.session import Place, Visitor
from hooksaga.core.attempts import Outcome, StatusClass, trigger_of
from hooksaga.core.curl import curl_command, secret_variables
from hooksaga.core.errors import NotFound
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter, AttemptPage, WholeAttempt
from hooksaga.operations.count_attempts import count_attempts
from hooksaga.operations.sent_request import SentRequest, read_sent_request

_FILTERS = ("type", "tenant", "subscription", "outcome", "answer", "error", "after", "before")


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List finished attempts, newest first, or export them."""
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (_filter(typed, visitor), cursor_of(typed), typed.choice("format", ExportFormat)),
    )
    found, count = AttemptPage([], None), None
    if asked is not None:
        wanted, before, form = asked
        if form is not None:
            read = attempt_pages(services_of(request), wanted)
            return await export(request, visitor, read, form, item=LoggedAttempt, name="deliveries")
        run = services_of(request).admin.run
        found = await run(attempt_log.list_attempts, wanted, before=before, limit=PAGE)
        if visitor.place is Place.CONSOLE:  # the portal's list shows no count
            count = await run(count_attempts, wanted)
    given = fields.given(*_FILTERS)
    return render(
        request,
        visitor,
        "deliveries.html",
        fields=fields,
        given=given,
        filters=urlencode(given | fields.given("cursor")),
        found=found,
        count=count,
        following=position_text(found.following),
        outcomes=tuple(Outcome),
        classes=tuple(StatusClass),
        wrong=wrong,
    )


def _filter(fields: Fields, visitor: Visitor) -> AttemptFilter:
    after, before = fields.period()
    return AttemptFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        status_class=fields.choice("answer", StatusClass),
        outcome=fields.choice("outcome", Outcome),
        finished_after=after,
        finished_before=before,
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
    """Show one attempt with its request and response. Both are always shown as text."""
    attempt_id = path_id(request, NotFound("attempt_not_found", "there is no such attempt"))
    attempt, sent = await services_of(request).admin.run(
        _read_attempt, attempt_id, visitor.caller.tenant_id, with_request=visitor.place is Place.CONSOLE
    )
    headers = attempt.request_headers or {}
    body = sent.body if sent and headers else None
    return render(
        request,
        visitor,
        "delivery.html",
        attempt=attempt,
        sent=sent,
        headers=headers,
        received=attempt.response_headers or {},
        curl=curl_command(sent.callback_url, headers, body) if sent and body is not None else None,
        variables=secret_variables(headers),
        trigger=_trigger(attempt),
        resendable=attempt.saga_status in (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED),
        waits=attempt.saga_status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY),
        shown_payload=SHOWN_PAYLOAD,
    )


async def _read_attempt(
    connection: Connection, attempt_id: int, tenant_id: str | None, *, with_request: bool
) -> tuple[WholeAttempt, SentRequest | None]:
    """Return an attempt, and the request that it sent unless the page does not show it."""
    attempt = await attempt_log.show_attempt(connection, attempt_id, tenant_id=tenant_id)
    return attempt, await read_sent_request(connection, attempt) if with_request else None


def _trigger(attempt: WholeAttempt) -> str:
    return trigger_of(
        attempt.attempt_number,
        requeued_from=attempt.requeued_from,
        resent_from=attempt.resent_from,
        bulk_operation_id=attempt.bulk_operation_id,
    )
