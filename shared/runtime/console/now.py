"""The operator's first page: what is wrong now."""

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from shared.runtime.console.charts import deliveries_chart, latency_chart
from shared.runtime.console.pages import link, page, redirect, render
from shared.runtime.console.session import Visitor
from shared.runtime.http_api import services_of
from shared.stages import overview
from shared.stages.overview import MOST_COUNTED


@page()
async def show_now(request: Request, visitor: Visitor) -> Response:
    """The first page of who may see all tenants; everybody else is led to the first one that the key opens."""
    if not visitor.may("admin") or visitor.caller.tenant_id is not None:
        first = "/console/events" if visitor.may("admin") else "/console/subscriptions"
        return redirect(request, first)
    return await _show(request, visitor, "now.html")


@page("admin")
async def show_panel(request: Request, visitor: Visitor) -> Response:
    """What of it changes, which the page asks for again every few seconds."""
    visitor.need_all_tenants()
    return await _show(request, visitor, "now_panel.html")


async def _show(request: Request, visitor: Visitor, template: str) -> Response:
    services = services_of(request)
    seen = await services.admin.run(overview.read_overview)
    endpoints = []
    if visitor.may("subscriptions:write"):
        endpoints = await services.subscriptions.run(overview.unwell_endpoints)

    def attempts(begin: datetime, end: datetime) -> str:
        return link(request, "/console/deliveries", after=begin, before=end)

    return render(
        request,
        visitor,
        template,
        seen=seen,
        endpoints=endpoints,
        deliveries=deliveries_chart(seen.minutes, attempts),
        latency=latency_chart(seen.minutes, attempts),
        most=MOST_COUNTED,
    )
