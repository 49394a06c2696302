"""The portal: a signed link, created by the API or on a page, opens one tenant's pages for a while."""

import time
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.portal_url import LINK_PURPOSE, portal_url
from hooksaga.api.sealed_sessions import Session, Theme, opened
from hooksaga.console.forms import EMPTY_FIELDS, Fields, checked, query_fields
from hooksaga.console.pages import action, fault, page, redirect, render
from hooksaga.console.portal_theme import theme_css
from hooksaga.console.session import Place, Visitor, key_of, set_cookie
from hooksaga.console.shown_once import forget_secret, redirect_to_show, secret_to_show
from hooksaga.console.snippets import snippets_for
from hooksaga.core.errors import Conflict, HooksagaError, InvalidInput
from hooksaga.core.event_input import check_tenant
from hooksaga.core.portal_links import DEFAULT_MINUTES, DEFAULT_RADIUS, NewPortalLink
from hooksaga.operations.subscriptions import show_subscription

SESSION_SECONDS = 3600
FRAMED_ANYWHERE = Theme(origin="*")


async def enter(request: Request) -> Response:
    """Start a session from a link. It outlasts the link, and ends when the key is revoked or the browser signs out,
    which also ends the link."""
    services = services_of(request)
    link = opened(services, LINK_PURPOSE, request.query_params.get("token", ""))
    try:
        found = None if link is None else await key_of(services, link)
    except HooksagaError as error:
        return fault(request, error)
    if link is None or found is None:
        return redirect(request, "/portal/ended")
    ends_at = int(time.time()) + SESSION_SECONDS
    session = Session(link.key_hash, ends_at, link.tenant_id, link.theme, link_id=link.id)
    response = redirect(request, "/portal")
    set_cookie(request, response, services, Place.PORTAL, session)
    return response


async def show_ended(request: Request) -> Response:
    """Show that a new link is needed, for visitors without a session.

    Any site may frame this page: the origin of the portal's frame is unknown by then, and the page contains no form
    and no data.
    """
    try:
        return render(request, None, "ended.html", status=401, theme=FRAMED_ANYWHERE)
    except HooksagaError as error:
        return fault(request, error)


@page()
async def first_page(request: Request, visitor: Visitor) -> Response:
    return redirect(request, "/portal/subscriptions")


@page()
async def show_theme(request: Request, visitor: Visitor) -> Response:
    """Serve the look that the link states as a style sheet, because inline styles are not allowed."""
    headers = {"cache-control": "private, max-age=300", "x-content-type-options": "nosniff"}
    return Response(theme_css(visitor.session.theme), media_type="text/css", headers=headers)


@page()
async def show_guide(request: Request, visitor: Visitor) -> Response:
    """Show how to receive events, with the path of the given endpoint."""
    endpoint_id = query_fields(request).number("endpoint")
    address = ""
    if endpoint_id is not None and visitor.may("subscriptions:write"):
        row = await services_of(request).subscriptions.run(
            show_subscription, endpoint_id, tenant_id=visitor.caller.tenant_id
        )
        address = row.pending_callback_url or row.callback_url
    seconds = f"{services_of(request).settings.http_timeout_seconds:g}"
    snippets = snippets_for(urlsplit(address).path)
    return render(request, visitor, "guide.html", address=address, snippets=snippets, seconds=seconds)


@page("subscriptions:write")
async def show_links(request: Request, visitor: Visitor) -> Response:
    shown = _form(request, visitor, EMPTY_FIELDS, made=secret_to_show(request, visitor))
    return forget_secret(request, visitor, shown)


def _form(
    request: Request,
    visitor: Visitor,
    form: Fields,
    *,
    made: str | None = None,
    wrong: InvalidInput | Conflict | None = None,
) -> Response:
    return render(
        request,
        visitor,
        "portal_link.html",
        form=form,
        made=made,
        wrong=wrong,
        back="/console/portal-links",
    )


@action("subscriptions:write")
async def make_link(request: Request, visitor: Visitor, form: Fields) -> Response:
    try:
        content = {
            "tenant_id": form.text("tenant_id"),
            "minutes": form.number("minutes") or DEFAULT_MINUTES,
            "name": form.raw("name").strip(),
            "logo_url": form.raw("logo_url").strip(),
            "colour": form.raw("colour").strip(),
            "radius": DEFAULT_RADIUS if (radius := form.number("radius", least=0)) is None else radius,
            "font": form.raw("font").strip(),
            "scheme": form.raw("scheme") or "auto",
            "header": form.raw("header") != "no",
            "language": form.raw("language") or "auto",
            "embed_origin": form.raw("embed_origin").strip(),
        }
        wanted = checked(NewPortalLink, content)
        tenant_id = check_tenant(wanted.tenant_id, visitor.caller.tenant_id)
        made, _ = portal_url(request, visitor.session.key_hash, wanted, tenant_id)
    except (InvalidInput, Conflict) as error:
        return _form(request, visitor, form, wrong=error)
    return redirect_to_show(request, visitor, "/console/portal-links", made)
