"""Frame of every page: access check, headers, language, error pages."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.error_code_views import shown_code
from hooksaga.api.http_api import request_id_of, root_path_of, services_of
from hooksaga.api.problem_answers import problem
from hooksaga.api.request_trace import correlation_id_of_request
from hooksaga.api.sealed_sessions import Theme
from hooksaga.console.assets import served_name
from hooksaga.console.forms import Fields, WrongField, read_form
from hooksaga.console.language import NAMES, Translator, console_texts, language_of
from hooksaga.console.portal_errors import portal_texts
from hooksaga.console.session import (
    NotSignedIn,
    Place,
    Visitor,
    check_form_token,
    check_same_origin,
    visitor_of,
)
from hooksaga.core.errors import HooksagaError, NotFound
from hooksaga.core.event_ids import event_id_text, short_event_id
from hooksaga.core.event_patterns import shown_event_types

TEMPLATES = Path(__file__).with_name("templates")
HTML = "text/html; charset=utf-8"
FILTER_NAMES = {"error_code": "error"}
"""Names of the API's filters that have another name on pages."""

NOTHING = "\u2013"
"""Placeholder for a missing number."""

Page = Callable[[Request, Visitor], Awaitable[Response]]
Action = Callable[[Request, Visitor, Fields], Awaitable[Response]]
Handler = Callable[[Request], Awaitable[Response]]


@cache
def environment() -> Environment:
    """Return the template environment: values are escaped, and unknown names are errors."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = cast(dict[str, Any], made.filters)  # pyright: ignore[reportUnknownMemberType]
    filters.update(
        moment=moment,
        at=partial(moment, zone=" UTC"),
        age=age,
        milliseconds=milliseconds,
        formatted=formatted,
        host=_host,
        event_id=event_id_text,
        short_id=short_event_id,
        event_types=shown_event_types,
    )
    names = cast(dict[str, Any], made.globals)  # pyright: ignore[reportUnknownMemberType]
    names.update(asset=served_name, language_names=NAMES)
    return made


def place_of(request: Request) -> Place:
    return Place.PORTAL if request.url.path.startswith(root_path_of(request) + "/portal") else Place.CONSOLE


def page(*scopes: str) -> Callable[[Page], Handler]:
    """Decorate a page that requires one of the scopes."""

    def wrap(show: Page) -> Handler:
        async def serve(request: Request) -> Response:
            return await _answer(request, scopes, show)

        return serve

    return wrap


def action(*scopes: str) -> Callable[[Action], Handler]:
    """Decorate a form's action. It runs only for forms of this session."""

    def wrap(act: Action) -> Handler:
        async def show(request: Request, visitor: Visitor) -> Response:
            check_same_origin(request)
            form = await read_form(request)
            check_form_token(visitor, form.raw("csrf"))
            return await act(request, visitor, form)

        async def serve(request: Request) -> Response:
            return await _answer(request, scopes, show)

        return serve

    return wrap


async def _answer(request: Request, scopes: tuple[str, ...], show: Page) -> Response:
    place, visitor = place_of(request), None
    try:
        visitor = await visitor_of(request, services_of(request), place)
        if scopes:
            visitor.need(*scopes)
        return await show(request, visitor)
    except NotSignedIn:
        return to_sign_in(request, place)
    except HooksagaError as error:
        return fault(request, error, visitor)


def to_sign_in(request: Request, place: Place) -> Response:
    """Redirect a visitor without a session to sign-in."""
    if place is Place.PORTAL:
        return redirect(request, "/portal/ended")
    here = _own_address(request)
    return redirect(
        request, "/console/sign-in", next=here if request.method == "GET" and here != "/console" else None
    )


def _own_address(request: Request) -> str:
    path = request.url.path.removeprefix(root_path_of(request))
    return f"{path}?{request.url.query}" if request.url.query else path


def redirect(request: Request, path: str, **parameters: object) -> Response:
    return Response(None, 303, {"location": link(request, path, **parameters), **_plain_headers()})


def fault(request: Request, error: HooksagaError, visitor: Visitor | None = None) -> Response:
    """Render an error page with the API's status, code and detail. Internal errors are logged."""
    content = _problem_of(request, error)
    return render(request, visitor, "fault.html", status=int(content["status"]), problem=content)


def _faults(
    request: Request, errors: Sequence[HooksagaError], names: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what is wrong with a form, to be shown beside its fields: the first fault, and the `others`. Each is a
    sentence of the catalogue with its values, or only a message in English."""
    shown: list[dict[str, Any]] = []
    for error in errors:
        content = _problem_of(request, error)
        field = str(content.get("field", ""))
        one = {"code": content["code"], "field": names.get(field, field), "message": content["detail"]}
        rule = {"sentence": error.sentence, "values": error.values} if isinstance(error, WrongField) else {}
        shown.append({**one, **rule, "others": []})
    return {**shown[0], "others": shown[1:]} if shown else None


def _problem_of(request: Request, error: HooksagaError) -> dict[str, Any]:
    """Return the API's problem for the error, which hides internals and logs server errors."""
    correlation_id = correlation_id_of_request(request)
    answer = problem(error, request_id_of(request), root_path_of(request), correlation_id)
    return json.loads(bytes(answer.body))


async def not_found(request: Request, visitor: Visitor) -> Response:
    """Raise NotFound for paths without a page."""
    raise NotFound("route_not_found", "there is no such page")


def render(
    request: Request,
    visitor: Visitor | None,
    template: str,
    *,
    status: int = 200,
    wrong: HooksagaError | Sequence[HooksagaError] | None = None,
    names: Mapping[str, str] = FILTER_NAMES,
    back: str | None = None,
    **content: Any,
) -> Response:
    """Render a template as a response that must not be cached or framed by other sites.

    wrong: the faults of a form or filter, whose status is 422 unless another is given. names: of its fields on the
    page, by those of the API. back: path and parameters of the page. The response to a form must set it, because the
    form's own path accepts only POST; otherwise it is the first page.
    """
    place = visitor.place if visitor else place_of(request)
    errors = [wrong] if isinstance(wrong, HooksagaError) else wrong or ()
    theme = visitor.session.theme if visitor else content.pop("theme", Theme())
    words = Translator(language_of(request, theme))

    def own(path: str, **parameters: object) -> str:
        return link(request, place.path + path, **parameters)

    text = (
        environment()
        .get_template(f"portal/{template}" if place is Place.PORTAL else template)
        .render(
            _=words,
            **(portal_texts if place is Place.PORTAL else console_texts)(words),
            visitor=visitor,
            place=place,
            theme=theme,
            link=partial(link, request),
            own=own,
            here=request.url.path.removeprefix(root_path_of(request)),
            back=back or (_own_address(request) if request.method in ("GET", "HEAD") else place.path),
            csrf=_csrf_field(visitor),
            code=partial(shown_code, visitor.caller) if visitor else None,
            now=datetime.now(UTC),
            wrong=_faults(request, errors, names),
            **content,
        )
    )
    status = 422 if errors and status == 200 else status
    return Response(text, status, media_type=HTML, headers=page_headers(theme))


def _csrf_field(visitor: Visitor | None) -> Markup:
    token = visitor.session.csrf if visitor else ""
    return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


def link(request: Request, path: str, **parameters: object) -> str:
    """Return a path with the parameters that are set; times in RFC 3339."""
    given = {name: _parameter(value) for name, value in parameters.items() if value not in (None, "")}
    return quote(root_path_of(request) + path) + (f"?{urlencode(given)}" if given else "")


def _parameter(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def page_headers(theme: Theme) -> dict[str, str]:
    """Return the security headers: no external content except a portal's logo, only hooksaga's scripts, and framing
    only by the origin that a portal link names."""
    logo = urlsplit(theme.logo_url)
    framed_by = theme.origin or "'none'"
    images = f" {logo.scheme}://{logo.netloc}" if theme.logo_url else ""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{images}; connect-src 'self'; "
        f"form-action 'self'; base-uri 'none'; frame-ancestors {framed_by}"
    )
    frames = {} if theme.origin else {"x-frame-options": "DENY"}
    return {**_plain_headers(), "content-security-policy": policy, **frames}


def _plain_headers() -> dict[str, str]:
    return {
        "cache-control": "no-store",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "cross-origin-opener-policy": "same-origin",
    }


def moment(value: datetime | None, zone: str = "") -> Markup | str:
    if value is None:
        return ""
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"), f"{utc:%Y-%m-%d %H:%M:%S}{zone}"
    )


def age(seconds: float | None) -> str:
    """Format an approximate age: 12 s, 5 min, 3 h, 2 d."""
    if seconds is None:
        return NOTHING
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def milliseconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


def formatted(text: str) -> str:
    """Return JSON with indentation, its numbers and texts as they are, and any other text unchanged."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _host(url: str) -> str:
    return urlsplit(url).netloc or url
