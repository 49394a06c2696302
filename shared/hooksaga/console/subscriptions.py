"""Subscriptions with their health: list, create, change, verify, test. The portal shows those of one tenant."""

import json

from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import Forbidden, path_id, services_of
from hooksaga.api.routes.subscriptions import box_of, create_for, rotate_for, verify_for
from hooksaga.console.event_types import offered_types
from hooksaga.console.forms import EMPTY_FIELDS, Fields, checked, query_fields
from hooksaga.console.missed import passed_by_of
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.console.shown_once import forget_secret, redirect_to_show, secret_to_show
from hooksaga.console.subscription_fields import at_creation, content_of, filled
from hooksaga.core.counts import MAX_COUNTED
from hooksaga.core.endpoint_health import expected_disable_time
from hooksaga.core.errors import Conflict, HooksagaError, InvalidInput, NotFound, ValueRefused
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_input import check_json_syntax, check_json_text
from hooksaga.core.event_patterns import sample_type
from hooksaga.core.events_for_tests import WantedTestEvent, draft_test_event
from hooksaga.core.models import NewSubscription, SecretRotation, SubscriptionChange
from hooksaga.operations import attempt_log, subscription_health, subscriptions
from hooksaga.operations.attempt_log import AttemptFilter
from hooksaga.operations.event_types import sample_of_type
from hooksaga.operations.subscription_flow import flow_of
from hooksaga.operations.subscription_stats import SAMPLE, SubscriptionStats, subscription_stats
from hooksaga.operations.subscriptions import Subscription
from hooksaga.stages.accept_events import AcceptedEvent

NEWEST = 10
WINDOW_HOURS = 24
SCOPE = "subscriptions:write"
TEST_PAYLOAD = json.dumps({"test": True})
OVERLAP_HOURS = "24"


@page(SCOPE)
async def show_new(request: Request, visitor: Visitor) -> Response:
    return await _form(request, visitor, None, EMPTY_FIELDS)


async def _form(
    request: Request,
    visitor: Visitor,
    row: Subscription | None,
    form: Fields,
    wrong: HooksagaError | None = None,
) -> Response:
    here = f"{visitor.place.path}/subscriptions/" + (f"{row.id}/edit" if row else "new")
    return render(
        request,
        visitor,
        "subscription_form.html",
        back=here,
        row=row,
        form=form,
        wrong=wrong,
        offered=await offered_types(request),
    )


@action(SCOPE)
async def create(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Create a subscription and show its secret once, or show the form with its error."""
    try:
        new = checked(NewSubscription, {**content_of(form), **at_creation(form)})
        created, secret = await create_for(services_of(request), visitor.caller, new)
    except (InvalidInput, ValueRefused) as error:
        return await _form(request, visitor, None, form, error)
    return redirect_to_show(request, visitor, _path(visitor, created), secret)


@page(SCOPE)
async def show(request: Request, visitor: Visitor) -> Response:
    row, secret = await read_one(request, visitor), secret_to_show(request, visitor)
    done = query_fields(request).raw("done")
    return forget_secret(request, visitor, await _show(request, visitor, row, secret=secret, done=done))


async def _show(
    request: Request,
    visitor: Visitor,
    row: Subscription,
    *,
    secret: str | None = None,
    typed: Fields = EMPTY_FIELDS,
    wrong: HooksagaError | None = None,
    done: str | None = None,
) -> Response:
    services, tenant_id = services_of(request), visitor.caller.tenant_id
    health = await services.subscriptions.run(subscription_health.show_health, row.id, tenant_id=tenant_id)
    flows = await services.subscriptions.run(flow_of, [row.id])
    stats, newest = await _numbers(request, visitor, row)
    test_type = sample_type(row.event_types)
    sample = await services.subscriptions.run(sample_of_type, test_type)
    begun = health.first_failure_at if health.eligible else None
    return render(
        request,
        visitor,
        "subscription.html",
        row=row,
        health=health,
        flow=flows[row.id],
        stats=stats,
        newest=newest,
        disabled_then=expected_disable_time(begun, services.settings.health_policy),
        secret=secret,
        wrong=wrong,
        done=done,
        test_payload=typed.raw("payload") or sample or TEST_PAYLOAD,
        overlap_hours=typed.raw("overlap_hours") or OVERLAP_HOURS,
        passed_by=passed_by_of(query_fields(request)),
        most=MAX_COUNTED,
        sample=SAMPLE,
        test_type=test_type,
        back=f"{visitor.place.path}/subscriptions/{row.id}",
    )


async def _numbers(
    request: Request, visitor: Visitor, row: Subscription
) -> tuple[SubscriptionStats, list[attempt_log.LoggedAttempt]]:
    services, tenant_id = services_of(request), visitor.caller.tenant_id
    stats = await services.admin.run(
        subscription_stats, row.id, window_hours=WINDOW_HOURS, tenant_id=tenant_id
    )
    if not visitor.may("admin"):
        return stats, []
    wanted = AttemptFilter(tenant_id=tenant_id, subscription_id=row.id)
    page = await services.admin.run(attempt_log.list_attempts, wanted, limit=NEWEST)
    return stats, page.items


async def read_one(request: Request, visitor: Visitor) -> Subscription:
    subscription_id = path_id(request, NotFound("subscription_not_found", "there is no such subscription"))
    return await services_of(request).subscriptions.run(
        subscriptions.show_subscription, subscription_id, tenant_id=visitor.caller.tenant_id
    )


@page(SCOPE)
async def show_edit(request: Request, visitor: Visitor) -> Response:
    row = await read_one(request, visitor)
    return await _form(request, visitor, row, Fields(filled(row)))


@action(SCOPE)
async def change(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Change the subscription, or show the form with its error. A new callback URL waits for verification."""
    row = await read_one(request, visitor)
    try:
        await apply_change(request, visitor, row, checked(SubscriptionChange, content_of(form)))
    except (InvalidInput, ValueRefused) as error:
        return await _form(request, visitor, row, form, error)
    return back_to(request, visitor, row, done="changed")


async def apply_change(
    request: Request, visitor: Visitor, row: Subscription, wanted: SubscriptionChange
) -> Subscription:
    services = services_of(request)
    changed = await services.subscriptions.run(
        subscriptions.change_subscription,
        row.id,
        wanted,
        tenant_id=visitor.caller.tenant_id,
        policy=services.settings.address_policy,
        box=box_of(services),
    )
    await services.wakes.subscriptions_due({row.id: None})
    return changed


def _path(visitor: Visitor, row: Subscription) -> str:
    return f"{visitor.place.path}/subscriptions/{row.id}"


def back_to(request: Request, visitor: Visitor, row: Subscription, **more: object) -> Response:
    return redirect(request, _path(visitor, row), **more)


@action(SCOPE)
async def delete(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Delete the subscription: it receives no more events and is no longer listed."""
    row = await read_one(request, visitor)
    services = services_of(request)
    await services.subscriptions.run(
        subscriptions.deactivate_subscription, row.id, tenant_id=visitor.caller.tenant_id
    )
    await services.wakes.subscriptions_due({row.id: None})
    return redirect(request, f"{visitor.place.path}/subscriptions")


@action(SCOPE)
async def verify(request: Request, visitor: Visitor, form: Fields) -> Response:
    row = await read_one(request, visitor)
    try:
        await verify_for(services_of(request), row)
    except (InvalidInput, Conflict) as error:
        return await _show(request, visitor, row, wrong=error)
    return back_to(request, visitor, row, done="verified")


@action(SCOPE)
async def rotate(request: Request, visitor: Visitor, form: Fields) -> Response:
    row = await read_one(request, visitor)
    hours = form.decimal("overlap_hours")
    asked_for: dict[str, object] = {} if hours is None else {"overlap_seconds": hours * 3600}
    asked_for["secret"] = form.raw("secret").strip() or None
    try:
        rotation = checked(SecretRotation, asked_for)
        rotated, secret = await rotate_for(services_of(request), visitor.caller, row.id, rotation)
    except InvalidInput as error:
        return await _show(request, visitor, row, typed=form, wrong=error)
    return redirect_to_show(request, visitor, _path(visitor, rotated), secret)


@action(SCOPE)
async def send_test(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Send a test event to this subscription only, then show the event, or the form with its error."""
    if not visitor.may("events:write"):
        raise Forbidden("this key needs one of the scopes: events:write")
    row, services = await read_one(request, visitor), services_of(request)
    payload = (form.raw("payload") or "{}").encode(errors="surrogatepass")
    try:
        check_json_text(payload, services.settings.payload_max_bytes)
        check_json_syntax(payload)
        draft = draft_test_event(
            WantedTestEvent(payload=Raw(payload)),
            subscription_id=row.id,
            tenant_id=row.tenant_id,
            event_types=row.event_types,
            takes=row.active and row.verified,
        )
        answer = await services.accept.submit(draft)
    except (InvalidInput, Conflict) as error:
        return await _show(request, visitor, row, typed=form, wrong=error)
    if not isinstance(answer, AcceptedEvent):
        return await _show(request, visitor, row, typed=form, wrong=answer)
    return redirect(request, f"{visitor.place.path}/events/{event_id_text(answer.webhook_id)}")
