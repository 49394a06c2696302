"""Sessions: an encrypted cookie contains the hash of a key, which is checked at every request.

So a session never has more rights than its key has now, and ends when the key is revoked or the session is signed out;
the database stores ended sessions.
"""

import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import VERIFY_SCOPE, Caller, Forbidden, root_path_of
from hooksaga.api.public_address import is_own_origin, is_secure
from hooksaga.api.sealed_sessions import Session, opened, sealed_session
from hooksaga.api.services import Services
from hooksaga.core.errors import HooksagaError
from hooksaga.operations.api_keys import ApiKey
from hooksaga.operations.console_sign_ins import end_sessions, session_has_ended
from hooksaga.operations.requester import Requester

CONSOLE_SECONDS = 12 * 3600


class NotSignedIn(HooksagaError):
    """The session is missing or ended."""


class Place(StrEnum):
    """The console of operators, or the portal of one tenant."""

    CONSOLE = "console"
    PORTAL = "portal"

    @property
    def cookie(self) -> str:
        return f"hooksaga_{self.value}"

    @property
    def path(self) -> str:
        return f"/{self.value}"


@dataclass(frozen=True, slots=True)
class Visitor:
    place: Place
    session: Session
    caller: Caller
    scopes: frozenset[str]

    @property
    def requester(self) -> Requester:
        """The key, as it is recorded with what it asks for here."""
        return Requester(self.caller.tenant_id, "console", self.caller.key_id)

    def may(self, *scopes: str) -> bool:
        """Return whether the key has one of the scopes, which are those of the API."""
        return bool(self.scopes & set(scopes))

    def need(self, *scopes: str) -> None:
        if not self.may(*scopes):
            raise Forbidden(f"this key needs one of the scopes: {', '.join(scopes)}")

    def need_all_tenants(self) -> None:
        if self.caller.tenant_id is not None:
            raise Forbidden("this page is for keys that are bound to no tenant")


def new_session(key_hash: bytes, seconds: int) -> Session:
    return Session(key_hash, int(time.time()) + seconds)


async def visitor_of(request: Request, services: Services, place: Place) -> Visitor:
    """Return the visitor of a request. Raises NotSignedIn."""
    session = opened(services, f"{place} session", request.cookies.get(place.cookie, ""))
    found = None if session is None else await key_of(services, session)
    if session is None or found is None:
        raise NotSignedIn("sign in first")
    tenant_id = session.tenant_id if place is Place.PORTAL else found.tenant_id
    if place is Place.PORTAL and found.tenant_id not in (None, tenant_id):
        raise NotSignedIn("this link's key is another tenant's")
    is_operator = tenant_id is None and "admin" in found.scopes
    may_verify = (
        place is Place.CONSOLE and VERIFY_SCOPE in found.scopes
    )  # no subscriber vouches for an address
    caller = Caller(tenant_id, found.id, is_operator, may_verify=may_verify)
    return Visitor(place, session, caller, frozenset(found.scopes))


async def key_of(services: Services, session: Session) -> ApiKey | None:
    """Return the key of a session or a portal link; None if it was signed out or revoked."""
    found = await services.key_checks.check(session.key_hash)
    if found is None or await services.admin.run(session_has_ended, session.id):
        return None
    return found


async def end_session(services: Services, session: Session) -> None:
    """End the session and its portal link on the server: neither can be used again."""
    ids = [session.id, *([session.link_id] if session.link_id else [])]
    ends_at = datetime.fromtimestamp(session.expires_at, UTC)
    await services.admin.run(end_sessions, ids, valid_until=ends_at)


def set_cookie(
    request: Request, response: Response, services: Services, place: Place, session: Session
) -> None:
    """Set the session cookie. A portal in another site's frame needs a partitioned cookie."""
    sealed = sealed_session(services, f"{place} session", session)
    seconds = max(int(session.expires_at - time.time()), 0)
    _set(request, response, place, place.cookie, sealed, seconds, framed=bool(session.theme.origin))


def set_page_cookie(
    request: Request, response: Response, visitor: Visitor, name: str, value: str, seconds: int
) -> None:
    """Set a cookie of the visitor's pages; an empty value for no seconds deletes it."""
    framed = bool(visitor.session.theme.origin)
    _set(request, response, visitor.place, name, value, seconds, framed=framed)


def _set(
    request: Request,
    response: Response,
    place: Place,
    name: str,
    value: str,
    seconds: int,
    *,
    framed: bool,
) -> None:
    path = root_path_of(request) + place.path
    parts = [f"{name}={value}", f"Path={path}", f"Max-Age={seconds}", "HttpOnly"]
    if framed:
        parts += ["SameSite=None", "Partitioned", "Secure"]
    else:
        parts += ["SameSite=Lax", *(["Secure"] if is_secure(request) else [])]
    response.headers.append("set-cookie", "; ".join(parts))


def check_same_origin(request: Request) -> None:
    """Raise Forbidden for a form from another site. Browsers send the page's origin with every form."""
    fetch_site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin", "")
    own = is_own_origin(request, origin) or fetch_site == "same-origin"
    if fetch_site not in (None, "same-origin") or not own:
        raise Forbidden("this form was sent by a page of another origin")


def check_form_token(visitor: Visitor, given: str) -> None:
    if not hmac.compare_digest(visitor.session.csrf.encode(), given.encode(errors="surrogatepass")):
        raise Forbidden("this form is not of this session; load the page again")
