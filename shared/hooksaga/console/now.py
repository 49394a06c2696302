"""Start page of the operator: current problems."""

from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.console.charts import deliveries_chart, latency_chart
from hooksaga.console.pages import link, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.operations import overview
from hooksaga.operations.overview import FAILURES_SEEN, LISTED, MAX_COUNTED, ErrorCodeCount


@page()
async def show_now(request: Request, visitor: Visitor) -> Response:
    """Show the operator's start page. Other keys are redirected to the first page that they may open, or get an
    error."""
    if visitor.may("admin"):
        if visitor.caller.tenant_id is None:
            return await _show(request, visitor, "now.html")
        return redirect(request, "/console/events")
    if visitor.may("subscriptions:write"):
        return redirect(request, "/console/subscriptions")
    return render(request, visitor, "no_first_page.html")


@page("admin")
async def show_panel(request: Request, visitor: Visitor) -> Response:
    """Render the part of the page that reloads every few seconds."""
    visitor.need_all_tenants()
    return await _show(request, visitor, "now_panel.html")


async def _show(request: Request, visitor: Visitor, template: str) -> Response:
    services = services_of(request)
    seen = await services.admin.run(overview.read_overview)
    endpoints = []
    if visitor.may("subscriptions:write"):
        endpoints = await services.subscriptions.run(overview.failing_and_disabled_endpoints)

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
        most=MAX_COUNTED,
        failures_seen=FAILURES_SEEN,
        more_failed=_may_be_more(seen.errors),
    )


def _may_be_more(errors: Sequence[ErrorCodeCount]) -> bool:
    """Return whether the counts may be incomplete: only the newest FAILURES_SEEN failures are counted, including those
    of unlisted codes, so a full list may omit some."""
    return len(errors) >= LISTED or sum(one.attempts for one in errors) >= FAILURES_SEEN
