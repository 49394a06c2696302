"""Sealed links into the portal: whoever has one sees one tenant's pages. Without Jinja2, because the API makes them."""

import time

from starlette.requests import Request

from shared.core.errors import InvalidInput
from shared.core.portal_links import NewPortalLink
from shared.runtime.console.session import MAX_COOKIE, Session, Theme, sealed_session
from shared.runtime.http_api import root_path_of, services_of

LINK_PURPOSE = "portal link"


def portal_url(request: Request, key_hash: bytes, wanted: NewPortalLink, tenant_id: str) -> tuple[str, int]:
    """A new link under the address that the request came to, and the unix time at which it ends.

    Raises InvalidInput where all of it is too long for a cookie.
    """
    theme = Theme(wanted.name, wanted.logo_url, wanted.colour, wanted.embed_origin)
    session = Session(key_hash, int(time.time()) + wanted.minutes * 60, tenant_id, theme)
    token = sealed_session(services_of(request), LINK_PURPOSE, session)
    if len(token) > MAX_COOKIE:
        raise InvalidInput("invalid_field", "name: is too long", field="name", status=422)
    here = f"{request.url.scheme}://{request.headers.get('host', '')}{root_path_of(request)}"
    return f"{here}/portal/enter?token={token}", session.expires_at
