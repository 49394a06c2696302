"""What a page shows only once, such as a new secret: from the answer to a form to the page after it.

A form is answered by a redirect, so that reloading the page sends nothing again. The secret travels in an encrypted
cookie of the same session, for one page and a minute; the page that shows it deletes it.
"""

import json
import time

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.adapters.secret_box import UnreadableSecret
from hooksaga.api.http_api import root_path_of, services_of
from hooksaga.api.sealed_sessions import MAX_COOKIE, box_for
from hooksaga.console.pages import redirect
from hooksaga.console.session import Visitor, set_page_cookie

SECONDS = 60


def redirect_to_show(
    request: Request, visitor: Visitor, path: str, secret: str, **parameters: object
) -> Response:
    """Redirect to a page, which shows the secret once."""
    response = redirect(request, path, **parameters)
    content = {
        "session": visitor.session.id,
        "page": path,
        "ends": time.time() + SECONDS,
        "secret": secret,
    }
    sealed = box_for(services_of(request), _purpose(visitor)).seal(json.dumps(content))
    set_page_cookie(request, response, visitor, _cookie(visitor), sealed, SECONDS)
    return response


def secret_to_show(request: Request, visitor: Visitor) -> str | None:
    """Return the secret that this page shows now, if there is one."""
    sealed = request.cookies.get(_cookie(visitor), "")
    if not sealed or len(sealed) > MAX_COOKIE:
        return None
    try:
        content = json.loads(box_for(services_of(request), _purpose(visitor)).open(sealed))
    except (UnreadableSecret, ValueError):
        return None
    here = request.url.path.removeprefix(root_path_of(request))
    is_for_here = (content["session"], content["page"]) == (visitor.session.id, here)
    return content["secret"] if is_for_here and content["ends"] > time.time() else None


def forget_secret(request: Request, visitor: Visitor, response: Response) -> Response:
    """Return the response, which deletes the cookie if the browser has one."""
    if _cookie(visitor) in request.cookies:
        set_page_cookie(request, response, visitor, _cookie(visitor), "", 0)
    return response


def _cookie(visitor: Visitor) -> str:
    return f"{visitor.place.cookie}_once"


def _purpose(visitor: Visitor) -> str:
    return f"{visitor.place} shown once"
