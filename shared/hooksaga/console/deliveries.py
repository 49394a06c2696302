"""The attempt log with its filters, and one attempt with its request and response."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import path_id, services_of
from hooksaga.console.events import cursor_of, following_text
from hooksaga.console.forms import query_fields
from hooksaga.console.pages import page, render
from hooksaga.console.session import Visitor
from hooksaga.core.attempts import Outcome, StatusClass, trigger_of
from hooksaga.core.errors import NotFound
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter, WholeAttempt

PAGE = 50


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    fields = query_fields(request)
    wanted = AttemptFilter(
        tenant_id=visitor.caller.tenant_id or fields.text("tenant"),
        subscription_id=fields.number("subscription"),
        event_type=fields.text("type"),
        error_code=checked_code_filter(visitor.caller, fields.text("error")),
        status_class=fields.choice("answer", StatusClass),
        outcome=fields.choice("outcome", Outcome),
        finished_after=fields.moment("after"),
        finished_before=fields.moment("before"),
    )
    before = cursor_of(fields)
    found = await services_of(request).admin.run(
        lambda connection: attempt_log.list_attempts(connection, wanted, before=before, limit=PAGE)
    )
    return render(
        request,
        visitor,
        "deliveries.html",
        fields=fields,
        wanted=wanted,
        found=found,
        following=following_text(found.following),
        outcomes=tuple(Outcome),
        classes=tuple(StatusClass),
    )


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
