"""The list of subscriptions, with the health of their endpoints."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.subscriptions import ListedSubscription
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import services_of
from hooksaga.api.routes.subscription_lists import subscription_pages
from hooksaga.console.forms import query_fields
from hooksaga.console.lists import PAGE, export, read_filter
from hooksaga.console.pages import page, render
from hooksaga.console.session import Visitor
from hooksaga.console.subscriptions import SCOPE
from hooksaga.operations import subscriptions
from hooksaga.operations.overview import health_of
from hooksaga.operations.subscription_flow import flow_of

COUNTED_IN_LISTS = 100
"""Waiting deliveries that a list counts for each subscription: this number means that many or more."""

_FILTERS = ("type", "tenant")


@page(SCOPE)
async def list_all(request: Request, visitor: Visitor) -> Response:
    """List subscriptions, newest first, or export them."""
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (
            typed.text("type"),
            visitor.caller.tenant_id or typed.text("tenant"),
            typed.number("before_id"),
            typed.choice("format", ExportFormat),
        ),
    )
    rows: list[subscriptions.Subscription] = []
    health: Mapping[int, object] = {}
    flows: Mapping[int, object] = {}
    if asked is not None:
        event_type, tenant_id, before_id, wanted = asked
        if wanted is not None:
            read = subscription_pages(services_of(request), tenant_id=tenant_id, event_type=event_type)
            return await export(request, visitor, read, wanted, item=ListedSubscription, name="subscriptions")
        run = services_of(request).subscriptions.run
        rows = await run(
            subscriptions.list_subscriptions,
            tenant_id=tenant_id,
            event_type=event_type,
            before_id=before_id,
            limit=PAGE,
        )
        ids = [row.id for row in rows]
        health = await run(health_of, ids)
        flows = await run(flow_of, ids, most=COUNTED_IN_LISTS)
    return render(
        request,
        visitor,
        "subscriptions.html",
        fields=fields,
        given=fields.given(*_FILTERS),
        rows=rows,
        health=health,
        flows=flows,
        most=COUNTED_IN_LISTS,
        following=rows[-1].id if len(rows) == PAGE else None,
        wrong=wrong,
    )
