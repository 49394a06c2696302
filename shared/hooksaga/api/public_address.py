"""Where browsers reach this API, for links, cookies and forms.

A Host header is the caller's word, so a link is made from it only where it names the caller's own machine. All others
begin with HOOKSAGA_PUBLIC_URL, or with what the stack wrote into the gateway's stage (shared/hooksaga/aws/gateway.py).
"""

from starlette.requests import Request

from hooksaga.api.http_api import root_path_of, services_of
from hooksaga.core.errors import Conflict
from hooksaga.core.public_url import is_loopback, origin_of

SCOPE_KEY = "hooksaga.public_url"
"""Of the ASGI scope: the address that the gateway says."""


def public_url_of(request: Request) -> str:
    """What links begin with, without a slash at its end. Raises Conflict `public_url_missing` where it is not known."""
    known = _configured(request)
    if known:
        return known
    host = request.headers.get("host", "")
    if not is_loopback(host):
        raise Conflict(
            "public_url_missing",
            "a link begins with HOOKSAGA_PUBLIC_URL, which is not set; this request came by another name",
        )
    return f"{request.url.scheme}://{host}{root_path_of(request)}"


def is_secure(request: Request) -> bool:
    """Whether cookies may be bound to TLS: everywhere but on this machine, where there is none."""
    known = _configured(request)
    if known:
        return known.startswith("https://")
    return request.url.scheme == "https" or not is_loopback(request.headers.get("host", ""))


def is_own_origin(request: Request, origin: str) -> bool:
    """Whether a page of this origin is one of ours."""
    known = _configured(request)
    if known and origin == origin_of(known):
        return True
    return origin.partition("://")[2] == request.headers.get("host", "")


def _configured(request: Request) -> str | None:
    given: str | None = request.scope.get(SCOPE_KEY)
    return services_of(request).settings.public_url or given
