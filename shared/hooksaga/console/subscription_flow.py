"""Pause and resume a subscription, and retry what waits, with one click each."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.routes.sagas import retry_all_now_for
from hooksaga.console.forms import Fields, checked
from hooksaga.console.pages import action
from hooksaga.console.session import Visitor
from hooksaga.console.subscriptions import SCOPE, back_to, read_one
from hooksaga.core.models import Resumption
from hooksaga.operations import subscription_flow


@action(SCOPE)
async def pause(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Start no further delivery; events wait."""
    row = await read_one(request, visitor)
    await services_of(request).subscriptions.run(
        lambda connection: subscription_flow.pause_subscription(
            connection, row.id, tenant_id=visitor.caller.tenant_id
        )
    )
    return back_to(request, visitor, row, done="paused")


@action(SCOPE)
async def resume(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Deliver what waits, or end it as dead letters."""
    row = await read_one(request, visitor)
    backlog = form.text("backlog")
    asked = checked(Resumption, {} if backlog is None else {"backlog": backlog})
    services = services_of(request)
    await services.subscriptions.run(
        lambda connection: subscription_flow.resume_subscription(
            connection, row.id, asked.backlog, tenant_id=visitor.caller.tenant_id
        )
    )
    await services.wakes.subscriptions_due({row.id: None})
    return back_to(request, visitor, row, done="discarded" if asked.backlog == "discard" else "resumed")


@action("admin")
async def retry_now(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Retry at once all deliveries that wait for a retry."""
    row = await read_one(request, visitor)
    await retry_all_now_for(services_of(request), row.id, visitor.caller.tenant_id)
    return back_to(request, visitor, row, done="retried")
