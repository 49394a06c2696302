"""Bulk requeue and resend: dry run, start, progress, pause, resume, stop."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.answers import bulk_operations as answers
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.exports import ExportFormat
from hooksaga.api.http_api import path_id, services_of
from hooksaga.api.routes.bulk_operations import bulk_operation_pages
from hooksaga.console.forms import Fields, checked, query_fields
from hooksaga.console.lists import PAGE, export, read_filter
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.core.bulk import BulkKind, BulkStatus
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.core.requeue_models import BulkChange, NewBulkOperation
from hooksaga.operations import bulk_operations
from hooksaga.operations.bulk_operations import BulkCount, BulkOperation


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    fields = query_fields(request)
    asked, wrong = read_filter(
        fields,
        lambda typed: (
            typed.choice("status", BulkStatus),
            visitor.caller.tenant_id or typed.text("tenant"),
            typed.number("before_id"),
            typed.choice("format", ExportFormat),
        ),
    )
    rows: list[BulkOperation] = []
    if asked is not None:
        status, tenant_id, before_id, form = asked
        if form is not None:
            read = bulk_operation_pages(services_of(request), tenant_id=tenant_id, status=status)
            return await export(
                request, visitor, read, form, item=answers.BulkOperation, name="bulk-operations"
            )
        rows = await services_of(request).admin.run(
            bulk_operations.list_bulk_operations,
            tenant_id=tenant_id,
            status=status,
            before_id=before_id,
            limit=PAGE,
        )
    return render(
        request,
        visitor,
        "bulk_operations.html",
        rows=rows,
        fields=fields,
        given=fields.given("tenant", "status"),
        statuses=tuple(BulkStatus),
        following=rows[-1].id if len(rows) == PAGE else None,
        wrong=wrong,
    )


@page("admin")
async def show_new(request: Request, visitor: Visitor) -> Response:
    return _form(request, visitor, query_fields(request))


def _form(
    request: Request,
    visitor: Visitor,
    form: Fields,
    *,
    count: BulkCount | None = None,
    wrong: InvalidInput | None = None,
) -> Response:
    rate = form.decimal("rate") or 0.0 if not wrong else 0.0
    return render(
        request,
        visitor,
        "bulk_form.html",
        form=form,
        count=count,
        seconds=count.matched / rate if count and rate else None,
        wrong=wrong,
        names=_FIELDS,
        back=None if request.method == "GET" else _form_path(form),
    )


_FIELDS = {
    "filter.subscription_id": "subscription",
    "filter.event_type": "type",
    "filter.error_code": "error",
    "error_code": "error",
    "filter.failed_after": "after",
    "filter.ended_after": "after",
    "filter.failed_before": "before",
    "filter.ended_before": "before",
    "rate_per_second": "rate",
}
"""Names of the form's fields by those of the API."""


def _form_path(form: Fields) -> str:
    kind = "?kind=resend" if form.raw("kind") == BulkKind.RESEND else ""
    return f"/console/bulk-operations/new{kind}"


@action("admin")
async def start(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Show the dry run; after its confirmation, start the operation."""
    admin = services_of(request).admin
    caller = visitor.requester
    try:
        wanted = checked(NewBulkOperation, _content(form))
        checked_code_filter(visitor.caller, wanted.filter.error_code)
    except InvalidInput as error:
        return _form(request, visitor, form, wrong=error)
    if form.raw("step") != "start":
        count = await admin.run(bulk_operations.count_bulk_operation, wanted, caller)
        return _form(request, visitor, form, count=count)
    operation, _ = await admin.run(bulk_operations.start_bulk_operation, wanted, caller)
    return redirect(request, f"/console/bulk-operations/{operation.id}")


def _content(form: Fields) -> dict[str, Any]:
    resends = form.raw("kind") == BulkKind.RESEND
    verb = "ended" if resends else "failed"
    moments = {f"{verb}_after": form.moment("after"), f"{verb}_before": form.moment("before")}
    chosen: dict[str, Any] = {
        "status": form.text("status") if resends else None,
        "subscription_id": form.number("subscription"),
        "event_type": form.text("type"),
        "error_code": form.text("error"),
        **{name: None if value is None else value.isoformat() for name, value in moments.items()},
    }
    rate = form.decimal("rate")
    return {
        "kind": BulkKind.RESEND.value if resends else BulkKind.REQUEUE.value,
        "filter": {name: value for name, value in chosen.items() if value is not None},
        "reason": form.raw("reason").strip(),
        **({} if rate is None else {"rate_per_second": rate}),
    }


@page("admin")
async def show(request: Request, visitor: Visitor) -> Response:
    """Show the progress, which reloads while the operation runs."""
    operation_id = _id(request)
    operation = await services_of(request).admin.run(
        bulk_operations.show_bulk_operation, operation_id, tenant_id=visitor.caller.tenant_id
    )
    return render(request, visitor, "bulk_operation.html", operation=operation)


def _mover(status: BulkStatus) -> Any:
    @action("admin")
    async def move(request: Request, visitor: Visitor, form: Fields) -> Response:
        operation_id = _id(request)
        await services_of(request).admin.run(
            bulk_operations.move_bulk_operation, operation_id, status, tenant_id=visitor.caller.tenant_id
        )
        return redirect(request, f"/console/bulk-operations/{operation_id}")

    return move


pause, resume, stop = (_mover(one) for one in (BulkStatus.PAUSED, BulkStatus.RUNNING, BulkStatus.STOPPED))


@action("admin")
async def pace(request: Request, visitor: Visitor, form: Fields) -> Response:
    operation_id = _id(request)
    wanted = checked(BulkChange, {"rate_per_second": form.decimal("rate")})
    await services_of(request).admin.run(
        bulk_operations.pace_bulk_operation,
        operation_id,
        wanted.rate_per_second,
        tenant_id=visitor.caller.tenant_id,
    )
    return redirect(request, f"/console/bulk-operations/{operation_id}")


def _id(request: Request) -> int:
    return path_id(request, NotFound("bulk_operation_not_found", "there is no such bulk operation"))
