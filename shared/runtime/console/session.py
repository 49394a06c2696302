"""Who looks at a page: a sealed cookie that names a key by its hash, which is checked at every request.

So a session can never do more than its key can now, and ends when the key is revoked, or when it is signed out: the
database keeps which were. The seal is the secret box's,
with keys of its own for each purpose: neither kind of session, nor a portal's link, is taken for another.
"""

import base64
import binascii
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shared.adapters.secret_box import SecretBox, UnreadableSecret
from shared.core.errors import HooksagaError
from shared.runtime.http_api import Caller, Forbidden, root_path_of
from shared.runtime.public_address import is_own_origin, is_secure
from shared.runtime.services import Services
from shared.stages.api_keys import ApiKey
from shared.stages.console_sign_ins import end_sessions, session_has_ended

CONSOLE_SECONDS = 12 * 3600
MAX_COOKIE = 3500
"""Browsers keep 4,096 characters of a cookie, its name included."""


class NotSignedIn(HooksagaError):
    """There is no session, or it has ended."""


class Place(StrEnum):
    """Whose pages: the operator's, or one tenant's own."""

    CONSOLE = "console"
    PORTAL = "portal"

    @property
    def cookie(self) -> str:
        return f"hooksaga_{self.value}"

    @property
    def path(self) -> str:
        return f"/{self.value}"


@dataclass(frozen=True, slots=True)
class Theme:
    """How a portal looks, and which origin may show it in a frame. Empty: as it comes, and none."""

    name: str = ""
    logo_url: str = ""
    colour: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie, or a portal's link, holds. tenant_id: of a portal; a console's is that of its key.

    link_id: the id of the portal's link that the session began with; it ends with the session.
    """

    key_hash: bytes
    expires_at: int
    tenant_id: str | None = None
    theme: Theme = Theme()
    link_id: str | None = None
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    def text(self) -> str:
        content = {
            "key": base64.b64encode(self.key_hash).decode(),
            "ends": self.expires_at,
            "tenant": self.tenant_id,
            "theme": [self.theme.name, self.theme.logo_url, self.theme.colour, self.theme.origin],
            "link": self.link_id,
            "csrf": self.csrf,
            "id": self.id,
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> "Session":
        content: Mapping[str, Any] = json.loads(text)
        return cls(
            key_hash=base64.b64decode(content["key"]),
            expires_at=content["ends"],
            tenant_id=content["tenant"],
            theme=Theme(*content["theme"]),
            link_id=content["link"],
            csrf=content["csrf"],
            id=content["id"],
        )


@dataclass(frozen=True, slots=True)
class Visitor:
    """A session whose key was valid a moment ago, and what it may do."""

    place: Place
    session: Session
    caller: Caller
    scopes: frozenset[str]

    def may(self, *scopes: str) -> bool:
        """Whether it has one of the scopes; every page and action names the API's."""
        return bool(self.scopes & set(scopes))

    def need(self, *scopes: str) -> None:
        """Raises Forbidden without one of the scopes."""
        if not self.may(*scopes):
            raise Forbidden(f"this key needs one of the scopes: {', '.join(scopes)}")

    def need_all_tenants(self) -> None:
        """Raises Forbidden for a key that is bound to one tenant."""
        if self.caller.tenant_id is not None:
            raise Forbidden("this page is for keys that are bound to no tenant")


def box_for(services: Services, purpose: str) -> SecretBox:
    """The box for this purpose."""
    assert services.box is not None, "who has these routes has the keys"
    return services.box.for_purpose(purpose)


def new_session(key_hash: bytes, seconds: int) -> Session:
    """A session that begins now."""
    return Session(key_hash, int(time.time()) + seconds)


async def visitor_of(request: Request, services: Services, place: Place) -> Visitor:
    """Who asks for a page. Raises NotSignedIn."""
    session = opened(services, f"{place} session", request.cookies.get(place.cookie, ""))
    found = None if session is None else await key_of(services, session)
    if session is None or found is None:
        raise NotSignedIn("sign in first")
    tenant_id = session.tenant_id if place is Place.PORTAL else found.tenant_id
    if place is Place.PORTAL and found.tenant_id not in (None, tenant_id):
        raise NotSignedIn("this link's key is another tenant's")
    is_operator = tenant_id is None and "admin" in found.scopes
    return Visitor(place, session, Caller(tenant_id, found.id, is_operator), frozenset(found.scopes))


async def key_of(services: Services, session: Session) -> ApiKey | None:
    """The key of a session, or of a portal's link; None once that was signed out, or the key revoked."""
    found = await services.check_key.submit(session.key_hash)
    if found is None or await services.admin.run(
        lambda connection: session_has_ended(connection, session.id)
    ):
        return None
    return found


async def end_session(services: Services, session: Session) -> None:
    """End it on the server, with the portal's link that it began with: nobody gets in with either again."""
    ids = [session.id, *([session.link_id] if session.link_id else [])]
    ends_at = datetime.fromtimestamp(session.expires_at, UTC)
    await services.admin.run(lambda connection: end_sessions(connection, ids, valid_until=ends_at))


def opened(services: Services, purpose: str, sealed: str) -> Session | None:
    """The session behind a sealed text that has not ended yet, or None for any other text."""
    if not sealed or len(sealed) > MAX_COOKIE:
        return None
    try:
        session = Session.read(box_for(services, purpose).open(sealed))
    except (UnreadableSecret, ValueError, KeyError, TypeError, binascii.Error):
        return None
    return session if session.expires_at > time.time() else None


def sealed_session(services: Services, purpose: str, session: Session) -> str:
    """What `opened` reads again."""
    return box_for(services, purpose).seal(session.text())


def set_cookie(
    request: Request, response: Response, services: Services, place: Place, session: Session
) -> None:
    """Sign the browser in. A portal that stands in another site's frame needs a cookie that is kept apart for it."""
    sealed = sealed_session(services, f"{place} session", session)
    seconds = max(int(session.expires_at - time.time()), 0)
    _set(request, response, place, sealed, seconds, framed=bool(session.theme.origin))


def drop_cookie(request: Request, response: Response, place: Place, *, framed: bool) -> None:
    """Sign the browser out."""
    _set(request, response, place, "", 0, framed=framed)


def _set(
    request: Request, response: Response, place: Place, value: str, seconds: int, *, framed: bool
) -> None:
    path = root_path_of(request) + place.path
    parts = [f"{place.cookie}={value}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly"]
    if framed:
        parts += ["SameSite=None", "Partitioned", "Secure"]
    else:
        parts += ["SameSite=Lax", *(["Secure"] if is_secure(request) else [])]
    response.headers.append("set-cookie", "; ".join(parts))


def check_same_origin(request: Request) -> None:
    """Raises Forbidden for a form that another site's page sent. Browsers name the page's origin with every form."""
    fetch_site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin", "")
    own = is_own_origin(request, origin) or fetch_site == "same-origin"
    if fetch_site not in (None, "same-origin") or not own:
        raise Forbidden("this form was sent by a page of another origin")


def check_form_token(visitor: Visitor, given: str) -> None:
    """Raises Forbidden for a form that was not made for this session."""
    if not hmac.compare_digest(visitor.session.csrf.encode(), given.encode(errors="surrogatepass")):
        raise Forbidden("this form is not of this session; load the page again")
