"""The list of subscriptions, with the health of their endpoints."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers.subscriptions import ListedSubscription
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import services_of
from hooksaga.api.routes.subscription_lists import subscription_pages
from hooksaga.console.forms import Fields, query_fields
from hooksaga.console.lists import PAGE, export, filter_fault
from hooksaga.console.pages import page, render
from hooksaga.console.session import Visitor
from hooksaga.console.subscriptions import SCOPE
from hooksaga.core.errors import InvalidInput
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
    before_id, wanted = fields.number("before_id"), fields.choice("format", ExportFormat)
    try:
        event_type = fields.text("type")
        tenant_id = visitor.caller.tenant_id or fields.text("tenant")
    except InvalidInput as error:
        return _list(request, visitor, fields, wrong=error)
    if wanted is not None:
        read = subscription_pages(services_of(request), tenant_id=tenant_id, event_type=event_type)
        return await export(request, visitor, read, wanted, item=ListedSubscription, name="subscriptions")
    run = services_of(request).subscriptions.run
    rows = await run(
        lambda connection: subscriptions.list_subscriptions(
            connection, tenant_id=tenant_id, event_type=event_type, before_id=before_id, limit=PAGE
        )
    )
    ids = [row.id for row in rows]
    health = await run(lambda connection: health_of(connection, ids))
    flows = await run(lambda connection: flow_of(connection, ids, most=COUNTED_IN_LISTS))
    return _list(request, visitor, fields, rows=rows, health=health, flows=flows)


def _list(
    request: Request,
    visitor: Visitor,
    fields: Fields,
    *,
    rows: list[subscriptions.Subscription] | None = None,
    wrong: InvalidInput | None = None,
    **more: Any,
) -> Response:
    rows = rows or []
    return render(
        request,
        visitor,
        "subscriptions.html",
        status=422 if wrong else 200,
        fields=fields,
        given=fields.given(*_FILTERS),
        rows=rows,
        most=COUNTED_IN_LISTS,
        following=rows[-1].id if len(rows) == PAGE else None,
        wrong=filter_fault(request, wrong),
        **more,
    )
