"""Routes of the console and of the portal, which has a tenant's part of the same pages."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.console import (
    bulk,
    dead_letters,
    deliveries,
    erasures,
    event_types,
    events,
    keys,
    now,
    portal,
    saga_actions,
    search,
    subscription_flow,
    subscription_list,
    subscriptions,
)
from hooksaga.console.assets import serve_asset
from hooksaga.console.pages import Handler, fault, not_found, page
from hooksaga.console.sign_in import choose_language, show_sign_in, sign_in, sign_out
from hooksaga.core.errors import HooksagaError


def _get(path: str, show: Handler) -> Route:
    return Route(path, show, methods=["GET"])


def _post(path: str, act: Handler) -> Route:
    return Route(path, act, methods=["POST"])


async def _asset(request: Request) -> Response:
    try:
        return await serve_asset(request)
    except HooksagaError as error:
        return fault(request, error)


def _of_both(base: str) -> list[Route]:
    """Return routes for operators and subscribers; a subscriber sees one tenant only."""
    one = base + "/subscriptions/{id}"
    return [
        _get(base + "/subscriptions", subscription_list.list_all),
        _get(base + "/subscriptions/new", subscriptions.show_new),
        _post(base + "/subscriptions", subscriptions.create),
        _get(one, subscriptions.show),
        _get(one + "/edit", subscriptions.show_edit),
        _post(one + "/edit", subscriptions.change),
        _post(one + "/switch", subscription_flow.switch),
        _post(one + "/backfill", subscription_flow.backfill),
        _post(one + "/pause", subscription_flow.pause),
        _post(one + "/resume", subscription_flow.resume),
        _post(one + "/retry-now", subscription_flow.retry_now),
        _post(one + "/delete", subscriptions.delete),
        _post(one + "/verify", subscriptions.verify),
        _post(one + "/rotate-secret", subscriptions.rotate),
        _post(one + "/test-event", subscriptions.send_test),
        _get(base + "/event-types", event_types.list_all),
        _get(base + "/event-types/{name:path}", event_types.show),
        _get(base + "/events/{id}", events.show),
        _post(base + "/sagas/{id}/cancel", saga_actions.cancel),
        _post(base + "/sagas/{id}/resend", saga_actions.resend),
        _post(base + "/sagas/{id}/retry-now", saga_actions.retry_now),
        _get(base + "/deliveries", deliveries.list_all),
        _post(base + "/deliveries/resend", deliveries.resend_ticked),
        _get(base + "/deliveries/{id}", deliveries.show),
        _get(base + "/dead-letters", dead_letters.list_all),
        _post(base + "/dead-letters/requeue", dead_letters.requeue_ticked),
        _get(base + "/dead-letters/{id}", dead_letters.show),
        _post(base + "/dead-letters/{id}/requeue", dead_letters.requeue),
        _get(base + "/search", search.search),
        _post(base + "/sign-out", sign_out),
    ]


_ONE_OPERATION = "/console/bulk-operations/{id}"

CONSOLE_ROUTES = [
    _get("/console/assets/{name}", _asset),
    _get("/console/language", choose_language),
    _get("/console/sign-in", show_sign_in),
    _post("/console/sign-in", sign_in),
    _get("/console", now.show_now),
    _get("/console/open", now.list_open),
    _get("/console/events", events.list_all),
    *_of_both("/console"),
    _get("/console/bulk-operations", bulk.list_all),
    _get("/console/bulk-operations/new", bulk.show_new),
    _post("/console/bulk-operations", bulk.start),
    _get(_ONE_OPERATION, bulk.show),
    _post(_ONE_OPERATION + "/pause", bulk.pause),
    _post(_ONE_OPERATION + "/resume", bulk.resume),
    _post(_ONE_OPERATION + "/stop", bulk.stop),
    _post(_ONE_OPERATION + "/pace", bulk.pace),
    _get("/console/erasures", erasures.list_all),
    _post("/console/erasures", erasures.start),
    _get("/console/keys", keys.list_all),
    _post("/console/keys", keys.create),
    _post("/console/keys/{id}/revoke", keys.revoke),
    _get("/console/portal-links", portal.show_links),
    _post("/console/portal-links", portal.make_link),
    _get("/console/{rest:path}", page()(not_found)),
]

PORTAL_ROUTES = [
    _get("/portal/enter", portal.enter),
    _get("/portal/ended", portal.show_ended),
    _get("/portal/theme.css", portal.show_theme),
    _get("/portal", portal.first_page),
    _get("/portal/guide", portal.show_guide),
    *_of_both("/portal"),
    _get("/portal/{rest:path}", page()(not_found)),
]

ROUTES = [*CONSOLE_ROUTES, *PORTAL_ROUTES]
