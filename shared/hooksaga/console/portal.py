"""The portal: a signed link, created by the API or on a page, opens one tenant's pages for a while."""

import time

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.portal_url import LINK_PURPOSE, portal_url
from hooksaga.api.sealed_sessions import Session, Theme, opened
from hooksaga.console.forms import EMPTY_FIELDS, Fields, checked
from hooksaga.console.pages import action, fault, form_fault, page, redirect, render
from hooksaga.console.session import Place, Visitor, key_of, set_cookie
from hooksaga.console.shown_once import forget_secret, redirect_to_show, secret_to_show
from hooksaga.core.errors import Conflict, HooksagaError, InvalidInput
from hooksaga.core.event_input import check_tenant
from hooksaga.core.portal_links import DEFAULT_MINUTES, NewPortalLink

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
        return render(request, None, "portal_ended.html", status=401, theme=FRAMED_ANYWHERE)
    except HooksagaError as error:
        return fault(request, error)


@page()
async def first_page(request: Request, visitor: Visitor) -> Response:
    return redirect(request, "/portal/subscriptions")


@page()
async def theme_css(request: Request, visitor: Visitor) -> Response:
    """Serve the portal's colour as a style sheet, because inline styles are not allowed."""
    colour = visitor.session.theme.colour
    text = f":root{{--brand:{colour};--on-brand:{_readable_on(colour)}}}" if colour else ""
    headers = {"cache-control": "private, max-age=300", "x-content-type-options": "nosniff"}
    return Response(text, media_type="text/css", headers=headers)


def _readable_on(colour: str) -> str:
    """Return black or white, whichever has more contrast (WCAG relative luminance)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


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
        status=422 if wrong else 200,
        form=form,
        made=made,
        wrong=form_fault(request, wrong) if wrong else None,
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
            "embed_origin": form.raw("embed_origin").strip(),
        }
        wanted = checked(NewPortalLink, content)
        tenant_id = check_tenant(wanted.tenant_id, visitor.caller.tenant_id)
        made, _ = portal_url(request, visitor.session.key_hash, wanted, tenant_id)
    except (InvalidInput, Conflict) as error:
        return _form(request, visitor, form, wrong=error)
    return redirect_to_show(request, visitor, "/console/portal-links", made)
