"""Public address of this API for browsers: for links, cookies and forms.

The caller controls the Host header, so a link is built from it only if it names the caller's own machine. All other
links start with HOOKSAGA_PUBLIC_URL, or the address in the gateway's stage (shared/hooksaga/aws/gateway.py).
"""

from starlette.requests import Request

from hooksaga.api.http_api import root_path_of, services_of
from hooksaga.core.errors import Conflict
from hooksaga.core.public_url import is_loopback, origin_of

SCOPE_KEY = "hooksaga.public_url"
"""Key of the ASGI scope with the address from the gateway."""


def public_url_of(request: Request) -> str:
    """Return the start of links, without a trailing slash. Raises Conflict `public_url_missing` if it is not known."""
    known = _configured(request)
    if known:
        return known
    host = request.headers.get("host", "")
    if not is_loopback(host):
        raise Conflict(
            "public_url_missing",
            "HOOKSAGA_PUBLIC_URL must be set, because this request used an untrusted host name",
        )
    return f"{request.url.scheme}://{host}{root_path_of(request)}"


def is_secure(request: Request) -> bool:
    """Return whether cookies may require TLS: everywhere except on this machine, which has none."""
    known = _configured(request)
    if known:
        return known.startswith("https://")
    return request.url.scheme == "https" or not is_loopback(request.headers.get("host", ""))


def is_own_origin(request: Request, origin: str) -> bool:
    """Return whether this origin is the API's own."""
    known = _configured(request)
    if known and origin == origin_of(known):
        return True
    return origin.partition("://")[2] == request.headers.get("host", "")


def _configured(request: Request) -> str | None:
    given: str | None = request.scope.get(SCOPE_KEY)
    return services_of(request).settings.public_url or given
