"""Start page of the operator: current problems, and what is open behind each figure."""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.console.charts import deliveries_chart, endpoint_chart, latency_chart
from hooksaga.console.dead_letters import DeadLetterChoice
from hooksaga.console.forms import query_fields
from hooksaga.console.lists import PAGE, read_filter
from hooksaga.console.pages import link, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.counts import Count
from hooksaga.core.time_ranges import Span, TimeRange
from hooksaga.operations import open_work, overview
from hooksaga.operations.open_work import OpenRow, OpenState


@page()
async def show_now(request: Request, visitor: Visitor) -> Response:
    """Show the operator's start page. Other keys are redirected to the first page that they may open, or get an
    error."""
    if visitor.may("admin"):
        if visitor.caller.tenant_id is None:
            return await _show(request, visitor)
        return redirect(request, "/console/events")
    if visitor.may("subscriptions:write"):
        return redirect(request, "/console/subscriptions")
    return render(request, visitor, "no_first_page.html")


async def _show(request: Request, visitor: Visitor) -> Response:
    services = services_of(request)
    wanted = query_fields(request).choice("range", TimeRange) or TimeRange.HOUR
    seen = await services.admin.run(overview.read_overview, wanted)
    endpoints: list[overview.Endpoint] = []
    if visitor.may("subscriptions:write"):
        endpoints = await services.subscriptions.run(overview.failing_and_disabled_endpoints)
    ids = [one.id for one in endpoints]
    activities = await services.admin.run(overview.read_activities, ids, seen.span, wanted)

    def attempts(span: Span, **more: object) -> str:
        return link(request, "/console/deliveries", after=span.begin, before=span.end, **more)

    def chart_of(subscription_id: int) -> object:
        rates = activities[subscription_id].rates
        return endpoint_chart(rates, lambda span: attempts(span, subscription=subscription_id))

    return render(
        request,
        visitor,
        "now.html",
        seen=seen,
        figures=seen.figures,
        open_work=seen.figures.open_work,
        endpoints=endpoints,
        activities=activities,
        attempts=attempts,
        chart_of=chart_of,
        deliveries=deliveries_chart(seen.rates, wanted, attempts),
        latency=latency_chart(seen.rates, wanted, attempts),
        ranges=tuple(TimeRange),
        chosen=wanted,
        states=OpenState,
        standing=DeadLetterChoice.STANDING,
    )


@page("admin")
async def list_open(request: Request, visitor: Visitor) -> Response:
    """List the events and deliveries that have not ended, in one of their states, the longest waiting first."""
    visitor.need_all_tenants()
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (typed.choice("state", OpenState) or OpenState.DUE, typed.number("subscription")),
    )
    counts: Mapping[OpenState, Count] = {}
    rows: Sequence[OpenRow] = ()
    state, subscription_id = asked or (None, None)
    if state is not None:
        run = services_of(request).admin.run
        counts = await run(open_work.count_open_work, subscription_id)
        rows = await run(open_work.list_open_work, state, subscription_id=subscription_id, limit=PAGE)
    return render(
        request,
        visitor,
        "open_work.html",
        fields=fields,
        states=tuple(OpenState),
        state=state,
        counts=counts,
        rows=rows,
        wrong=wrong,
    )
