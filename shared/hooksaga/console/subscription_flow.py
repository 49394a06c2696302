"""Enable, disable, pause and resume a subscription, deliver what it missed, and retry what waits: one click each."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.routes.sagas import retry_all_now_for
from hooksaga.console.forms import Fields, checked
from hooksaga.console.missed import passed_by_parameters, read_missed
from hooksaga.console.pages import action, redirect
from hooksaga.console.session import Place, Visitor
from hooksaga.console.subscriptions import SCOPE, apply_change, back_to, read_one
from hooksaga.core.bulk import BulkKind
from hooksaga.core.models import Resumption, SubscriptionChange
from hooksaga.core.requeue_models import NewBulkOperation
from hooksaga.operations import bulk_operations, subscription_flow

BACKFILL_REASON = "events that passed by while the subscription was disabled"


@action(SCOPE)
async def switch(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Enable or disable. Nothing that was missed is sent by itself: the page tells it and offers to."""
    row = await read_one(request, visitor)
    if form.raw("active") != "yes":
        await apply_change(request, visitor, row, SubscriptionChange(active=False))
        return back_to(request, visitor, row, done="switched_off")
    missed = await read_missed(request, visitor, row)
    changed = await apply_change(request, visitor, row, SubscriptionChange(active=True))
    told = passed_by_parameters(missed, changed.updated_at)
    return back_to(request, visitor, row, done="switched_on", **told)


@action("admin")
async def backfill(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Deliver the events of a time that the subscription did not receive. A second click finds the first operation."""
    row = await read_one(request, visitor)
    between = {name: value.isoformat() for name in ("since", "until") if (value := form.moment(name))}
    content = {
        "kind": BulkKind.BACKFILL.value,
        "filter": {"subscription_id": row.id, **between},
        "reason": BACKFILL_REASON,
    }
    wanted = checked(NewBulkOperation, content)
    operation, _ = await services_of(request).admin.run(
        bulk_operations.start_bulk_operation, wanted, visitor.requester
    )
    if visitor.place is Place.CONSOLE:
        return redirect(request, f"/console/bulk-operations/{operation.id}")
    return back_to(request, visitor, row, done="backfilled")


@action(SCOPE)
async def pause(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Start no further delivery; events wait."""
    row = await read_one(request, visitor)
    await services_of(request).subscriptions.run(
        subscription_flow.pause_subscription, row.id, tenant_id=visitor.caller.tenant_id
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
        subscription_flow.resume_subscription, row.id, asked.backlog, tenant_id=visitor.caller.tenant_id
    )
    await services.wakes.subscriptions_due({row.id: None})
    return back_to(request, visitor, row, done="discarded" if asked.backlog == "discard" else "resumed")


@action("admin")
async def retry_now(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Retry at once all deliveries that wait for a retry."""
    row = await read_one(request, visitor)
    await retry_all_now_for(services_of(request), row.id, visitor.caller.tenant_id)
    return back_to(request, visitor, row, done="retried")
