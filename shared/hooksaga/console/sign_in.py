"""Sign-in with an API key or a single-use link, and the choice of language."""

from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import Unauthorized, root_path_of, services_of
from hooksaga.api.public_address import is_secure
from hooksaga.console.forms import Fields, query_fields, read_form
from hooksaga.console.language import COOKIE, Language
from hooksaga.console.pages import action, fault, redirect, render
from hooksaga.console.session import (
    CONSOLE_SECONDS,
    Place,
    Visitor,
    check_same_origin,
    end_session,
    new_session,
    set_cookie,
    set_page_cookie,
)
from hooksaga.core.errors import HooksagaError
from hooksaga.operations.api_keys import hash_api_key
from hooksaga.operations.console_sign_ins import use_sign_in

A_YEAR = 31_536_000


async def show_sign_in(request: Request) -> Response:
    """Show the form, or sign in with the token of a link."""
    try:
        token = request.query_params.get("token")
        if token:
            return await _with_link(request, token)
        return render(request, None, "sign_in.html", next=own_path(query_fields(request).raw("next")))
    except HooksagaError as error:
        return fault(request, error)


async def _with_link(request: Request, token: str) -> Response:
    services = services_of(request)
    key_hash = await services.admin.run(use_sign_in, token)
    if key_hash is None:
        wrong = Unauthorized("this link was used before, or is too old; sign in with an API key")
        return render(request, None, "sign_in.html", status=401, next="", wrong=wrong)
    return _signed_in(request, key_hash, "/console")


async def sign_in(request: Request) -> Response:
    """Sign in with a key and redirect to the requested page, or show the form again."""
    try:
        check_same_origin(request)
        form = await read_form(request)
        key_hash = hash_api_key(form.raw("key").strip())
        target = own_path(form.raw("next"))
        if await services_of(request).key_checks.check(key_hash) is None:
            wrong = Unauthorized("the key is unknown or revoked")
            back = f"/console/sign-in?{urlencode({'next': target})}" if target else "/console/sign-in"
            return render(request, None, "sign_in.html", status=401, back=back, next=target, wrong=wrong)
        return _signed_in(request, key_hash, target or "/console")
    except HooksagaError as error:
        return fault(request, error)


def _signed_in(request: Request, key_hash: bytes, target: str) -> Response:
    response = to_own(request, target)
    session = new_session(key_hash, CONSOLE_SECONDS)
    set_cookie(request, response, services_of(request), Place.CONSOLE, session)
    return response


@action()
async def sign_out(request: Request, visitor: Visitor, form: Fields) -> Response:
    """End the session on the server and delete its cookie. Other sessions stay."""
    await end_session(services_of(request), visitor.session)
    target = "/portal/ended" if visitor.place is Place.PORTAL else "/console/sign-in"
    response = redirect(request, target)
    set_page_cookie(request, response, visitor, visitor.place.cookie, "", 0)
    return response


def own_path(path: str) -> str:
    """Return the path if it is a page of the console, else nothing: redirects never leave the site."""
    is_ours = path.startswith(("/console", "/portal")) and path.isprintable() and path.isascii()
    return path if is_ours and not {" ", "\\"} & set(path) and "//" not in path else ""


def to_own(request: Request, target: str) -> Response:
    headers = {"location": quote(root_path_of(request)) + target, "cache-control": "no-store"}
    return Response(status_code=303, headers=headers)


async def choose_language(request: Request) -> Response:
    fields = query_fields(request)
    wanted = fields.raw("to") if fields.raw("to") in tuple(Language) else Language.ENGLISH
    back = own_path(fields.raw("back")) or "/console"
    response = to_own(request, back)
    is_framed = request.headers.get("sec-fetch-dest") == "iframe"
    rules = "SameSite=None; Partitioned; Secure" if is_framed else "SameSite=Lax"
    secure = "; Secure" if is_secure(request) and not is_framed else ""
    path = root_path_of(request) or "/"
    cookie = f"{COOKIE}={wanted}; Path={path}; Max-Age={A_YEAR}; HttpOnly; {rules}{secure}"
    response.headers.append("set-cookie", cookie)
    return response
