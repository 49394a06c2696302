"""Sealed links into the portal: each gives access to one tenant's pages. Without Jinja2, because the API makes them."""

import time

from starlette.requests import Request

from hooksaga.api.http_api import services_of
from hooksaga.api.public_address import public_url_of
from hooksaga.api.sealed_sessions import MAX_COOKIE, Session, Theme, sealed_session
from hooksaga.core.errors import InvalidInput
from hooksaga.core.portal_links import NewPortalLink

LINK_PURPOSE = "portal link"


def portal_url(request: Request, key_hash: bytes, wanted: NewPortalLink, tenant_id: str) -> tuple[str, int]:
    """Return a new link and the Unix time of its expiry.

    Raises InvalidInput if the session is too long for a cookie, and Conflict `public_url_missing`.
    """
    look = wanted.model_dump(exclude={"tenant_id", "minutes", "embed_origin"})
    theme = Theme(**look, origin=wanted.embed_origin)
    session = Session(key_hash, int(time.time()) + wanted.minutes * 60, tenant_id, theme)
    token = sealed_session(services_of(request), LINK_PURPOSE, session)
    if len(token) > MAX_COOKIE:
        rule = "name, logo_url, font and embed_origin: are too long together for a cookie"
        raise InvalidInput("invalid_field", rule, field="name", status=422)
    return f"{public_url_of(request)}/portal/enter?token={token}", session.expires_at
