"""The frame of the HTTP API: keys, bodies, cursors, and the one table from errors to answers.

Every error is an RFC 9457 problem with a stable `code` and a `request_id`. A client's fault is never a 5xx.
"""

import asyncio
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ExceptionHandler

from hooksaga.api.cursors import ID_CURSOR, read_cursor, write_cursor
from hooksaga.api.problem_types import problem_type
from hooksaga.api.request_trace import correlation_id_of_request
from hooksaga.api.services import Services
from hooksaga.api.unavailable_lines import UnavailableLines
from hooksaga.core.errors import (
    Conflict,
    DatabaseUnavailable,
    HooksagaError,
    InvalidInput,
    NotFound,
    QueueUnavailable,
    RowRefused,
    SchemaMismatch,
    ValueRefused,
)
from hooksaga.core.event_input import check_json_syntax, check_json_text
from hooksaga.core.media_types import is_json, is_utf8, media_type_of
from hooksaga.core.moments import read_moment
from hooksaga.operations.api_keys import hash_api_key
from hooksaga.runtime.telemetry import logger

JSON_TYPE = "application/json"
ANY_JSON = "*/json or */*+json"
DEFAULT_LIMIT = 50
MAX_LIMIT = 250
BODY_SECONDS = 30
MAX_ID = 2**63 - 1
NOT_UTF8 = "\ufffd"
"""What bytes that are no UTF-8 have become where a query string was decoded."""

QUERY_TEXT = r"[^\u0000-\u001f\u007f\ufffd]{1,100}"
"""Of a text in a query string: no control characters, and no NOT_UTF8."""

_WHOLE_NUMBER = re.compile(r"([0-9]{1,19})(?:[.]0{1,19})?")
"""In a query string; 14.0 is the number that it is in a body."""

RETRY_AFTER_SECONDS = "1"

Model = TypeVar("Model", bound=BaseModel)


class Unauthorized(HooksagaError):
    """No key, or one that is not valid (any more). The answer does not say which."""


class Forbidden(HooksagaError):
    """The key is valid and lacks the scope."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose key it is. tenant_id None: it may act for every tenant.

    is_operator: runs the installation: a key with `admin` that is bound to no tenant. All others are subscribers or
    producers, who are not told what stands inside this network.
    """

    tenant_id: str | None
    key_id: int
    is_operator: bool = False


def services_of(request: Request) -> Services:
    """The services that the application was built with."""
    services: Services = request.app.state.services
    return services


async def authorize(request: Request, *scopes: str) -> Caller:
    """The caller behind the bearer key, which must have one of the scopes. Raises Unauthorized or Forbidden."""
    found = await services_of(request).check_key.submit(hash_api_key(bearer_of(request)))
    if found is None:
        raise Unauthorized("this key is not valid")
    if not set(scopes) & set(found.scopes):
        raise Forbidden(f"this key needs one of the scopes: {', '.join(scopes)}")
    return Caller(found.tenant_id, found.id, found.tenant_id is None and "admin" in found.scopes)


def bearer_of(request: Request) -> str:
    """The key as it was sent. Raises Unauthorized without one."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthorized("a key is needed: Authorization: Bearer hs_…")
    return key.strip()


def media_type_of_request(request: Request) -> str:
    """The content type without its parameters, in lower case; JSON where none is given."""
    return media_type_of(request.headers.get("content-type", "")) or JSON_TYPE


async def read_body(request: Request, max_bytes: int, *, media_type: str = JSON_TYPE) -> bytes:
    """The whole body, of this type, which may be ANY_JSON.

    Raises InvalidInput when it is larger than max_bytes, compressed, of another type or charset, or too slow.
    """
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise InvalidInput("body_compressed", "compressed bodies are not accepted", status=415)
    given = media_type_of_request(request)
    if not (is_json(given) if media_type == ANY_JSON else given == media_type):
        raise InvalidInput("unsupported_media_type", f"the content type must be {media_type}", status=415)
    if not is_utf8(request.headers.get("content-type", "")):
        raise InvalidInput("unsupported_charset", "the charset must be utf-8", status=415)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _whole_body(request, max_bytes)
    except TimeoutError:
        raise InvalidInput("body_too_slow", f"the body must arrive in {BODY_SECONDS} s", status=408) from None


async def _whole_body(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise InvalidInput("body_too_large", f"the body may have {max_bytes} bytes", status=413)
    return bytes(body)


async def read_model(request: Request, model: type[Model], *, empty: bytes | None = None) -> Model:
    """The body as a checked model. `empty` stands in for an empty body, where that is allowed."""
    max_bytes = services_of(request).settings.payload_max_bytes
    body = await read_body(request, max_bytes)
    body = empty if empty is not None and not body else body
    check_json_text(body, max_bytes)
    check_json_syntax(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid_field(error) from None


def invalid_field(error: ValidationError) -> InvalidInput:
    """The first rule that the input breaks."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "json_invalid":
        return InvalidInput("invalid_json", f"the body is not valid JSON: {message}")
    return InvalidInput("invalid_field", f"{field or 'the body'}: {message}", field=field, status=422)


def path_id(request: Request, missing: NotFound) -> int:
    """The integer id in the path. What is no id of ours names nothing: `missing` is raised."""
    text = str(request.path_params["id"])
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and 0 < int(text) <= MAX_ID):
        raise missing
    return int(text)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for: `limit` rows with an id below `before_id`."""

    limit: int
    before_id: int | None


def page_of(request: Request, *filters: str) -> Page:
    """limit and cursor. Raises InvalidInput for a bad one, and for query parameters that are not known."""
    limit = limit_of(request, *filters)
    cursor = request.query_params.get("cursor")
    return Page(limit, None if cursor is None else read_cursor(cursor, ID_CURSOR)[0])


def limit_of(request: Request, *filters: str) -> int:
    """How many rows are asked for. Raises as page_of does, but leaves the cursor to the caller."""
    check_parameters(request, "limit", "cursor", *filters)
    return query_integer(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT


def check_parameters(request: Request, *known: str) -> None:
    """Raises InvalidInput for a query parameter that is not among those known, comes twice, or is no UTF-8."""
    given = request.query_params.multi_items()
    for name, value in given:
        if name not in known:
            raise InvalidInput(
                "unknown_parameter", f"there is no query parameter {name!r}", field=name, status=422
            )
        if sum(other == name for other, _ in given) > 1:
            raise InvalidInput("invalid_parameter", f"{name} is given more than once", field=name, status=422)
        if NOT_UTF8 in value:
            raise InvalidInput("invalid_parameter", f"{name} is not UTF-8", field=name, status=422)


def query_integer(request: Request, name: str, least: int, most: int) -> int | None:
    """An integer query parameter within bounds, or None without it. Raises InvalidInput."""
    text = request.query_params.get(name)
    if text is None:
        return None
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None or not least <= int(found[1]) <= most:
        raise InvalidInput(
            "invalid_parameter", f"{name} is a whole number from {least} to {most}", field=name, status=422
        )
    return int(found[1])


def query_text(request: Request, name: str) -> str | None:
    """A text query parameter, or None without it. Raises InvalidInput for what no stored text can be."""
    value = request.query_params.get(name)
    if value is not None and not re.fullmatch(QUERY_TEXT, value):
        rule = f"{name} has 1 to 100 characters, and no control characters"
        raise InvalidInput("invalid_parameter", rule, field=name, status=422)
    return value


def query_moment(request: Request, name: str) -> datetime | None:
    """A time among the query parameters, or None without it. Raises InvalidInput."""
    value = request.query_params.get(name)
    if value is None:
        return None
    try:
        return read_moment(value)
    except ValueError as error:
        raise InvalidInput("invalid_parameter", f"{name} {error}", field=name, status=422) from None


def list_response(items: list[dict[str, Any]], page: Page) -> Response:
    """`{items, next}`; next is null on the last page."""
    following = write_cursor(items[-1]["id"]) if len(items) == page.limit else None
    return json_response({"items": items, "next": following})


class _Row(Protocol):
    @property
    def id(self) -> int: ...


def next_cursor(rows: Sequence[_Row], page: Page) -> str | None:
    """Where the page behind these rows begins; None behind the last one."""
    return write_cursor(rows[-1].id) if len(rows) == page.limit else None


def json_response(content: Mapping[str, Any], status: int = 200) -> Response:
    """Compact UTF-8 JSON."""
    return Response(dump_json(content), status, media_type="application/json")


def response_with_payload(content: Mapping[str, Any], name: str, payload: str | None) -> Response:
    """Such JSON with one more field, whose JSON text is put in as it is stored."""
    return Response(f'{dump_json(content)[:-1]},"{name}":{payload}}}', media_type="application/json")


def dump_json(content: Any) -> str:
    """JSON text; a lone surrogate, which UTF-8 cannot carry, is escaped."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"))


def problem(
    error: Exception, request_id: str, root_path: str = "", correlation_id: str | None = None
) -> Response:
    """The answer to an error. Unknown errors are logged with their trace and answered without any detail. Of answers of
    503 for one kind of cause one line a second is logged, with their count.

    root_path is the request's, as for problem_type.
    """
    status, code, headers = _status_of(error)
    if status >= 500:
        keys = {"request_id": request_id, "code": code, "correlation_id": correlation_id}
        _log_failure(_requests, status, error, keys)
    content: dict[str, Any] = {
        "type": problem_type(code, root_path),
        "title": code.replace("_", " "),
        "status": status,
        "detail": _detail(error, status),
        "code": code,
        "request_id": request_id,
    }
    if isinstance(error, InvalidInput) and error.field:
        content["field"] = error.field
    return Response(dump_json(content), status, headers=headers, media_type="application/problem+json")


def _log_failure(lines: UnavailableLines, status: int, error: Exception, keys: dict[str, str | None]) -> None:
    """Each fault of ours has a line of its own; answers of 503 for one kind of cause share one a second."""
    if status == 503:
        lines.note((str(keys["code"]), type(error).__name__), error, keys)
    else:
        lines.write(error, keys)


def _write_request(error: Exception, keys: Mapping[str, object]) -> None:
    logger.error("request failed", exc_info=error, extra=dict(keys))


def _write_item(error: Exception, keys: Mapping[str, object]) -> None:
    logger.error("item failed", exc_info=error, extra=dict(keys))


_requests = UnavailableLines(_write_request)
_items = UnavailableLines(_write_item)


def problem_content(error: HooksagaError, root_path: str = "") -> dict[str, Any]:
    """The problem of one item within a batch's answer, or of an action that came by no HTTP request.

    Logged as problem() does.
    """
    status, code, _ = _status_of(error)
    if status >= 500:
        _log_failure(_items, status, error, {"code": code})
    content = {"type": problem_type(code, root_path), "status": status, "code": code, "detail": str(error)}
    if isinstance(error, InvalidInput) and error.field:
        content["field"] = error.field
    return content


_STATUSES: tuple[tuple[type[Exception], int, str, dict[str, str]], ...] = (
    (NotFound, 404, "", {}),
    (Conflict, 409, "", {}),
    (Unauthorized, 401, "unauthorized", {"www-authenticate": "Bearer"}),
    (Forbidden, 403, "forbidden", {}),
    (ValueRefused, 422, "value_refused", {}),
    (DatabaseUnavailable, 503, "database_unavailable", {"retry-after": RETRY_AFTER_SECONDS}),
    (RowRefused, 503, "database_unavailable", {"retry-after": RETRY_AFTER_SECONDS}),
    (SchemaMismatch, 503, "database_unavailable", {"retry-after": RETRY_AFTER_SECONDS}),
    (QueueUnavailable, 503, "queue_unavailable", {"retry-after": RETRY_AFTER_SECONDS}),
    (ClientDisconnect, 400, "body_incomplete", {}),
)
"""From errors to status, code and headers. An empty code is the error's own."""

_ROUTING_CODES = {404: "route_not_found", 405: "method_not_allowed"}


def _status_of(error: Exception) -> tuple[int, str, dict[str, str]]:
    if isinstance(error, InvalidInput):
        return error.status, error.code, {}
    if isinstance(error, HTTPException):
        code = _ROUTING_CODES.get(error.status_code, "bad_request")
        return error.status_code, code, dict(error.headers or {})
    for kind, status, code, headers in _STATUSES:
        if isinstance(error, kind):
            return status, code or str(getattr(error, "code", "")), headers
    return 500, "internal_error", {}


def _detail(error: Exception, status: int) -> str:
    match error:
        case ValueRefused():
            return "the database does not take one of the values"
        case DatabaseUnavailable() | RowRefused() | SchemaMismatch():
            return (
                "the database is away, or takes no writes, for the moment; it may or may not have carried this call "
                "out: repeat it"
            )
        case HTTPException():
            return error.detail
        case _ if status == 500:
            return "the fault is ours; it was logged under this request_id"
        case _:
            return str(error)


async def answer_problem(request: Request, error: Exception) -> Response:
    """Exception handler of the application."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        error.headers = {**(error.headers or {}), "Allow": ", ".join(_methods_of_path(request))}
    return problem(error, request_id_of(request), root_path_of(request), correlation_id_of_request(request))


def _methods_of_path(request: Request) -> list[str]:
    """Of all routes of the path: the first one whose path matches knows its own alone."""
    routes = (route for route in request.app.routes if isinstance(route, Route) and route.methods)
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    fixed = [route for route in fitting if is_fixed(route)]
    return sorted({method for route in fixed or fitting for method in route.methods or ()})


def is_fixed(route: BaseRoute) -> bool:
    """Whether the route has one path, and no part of it stands for anything."""
    return isinstance(route, Route) and not route.param_convertors


def root_path_of(request: Request) -> str:
    """What stands before this API's paths in the URL; nothing, or a gateway's stage."""
    return str(request.scope.get("root_path", ""))


def request_id_of(request: Request) -> str:
    """One id per request, made by us: a client's own would end in our logs as it came."""
    request_id: str = request.scope.setdefault("hooksaga.request_id", f"req_{secrets.token_hex(12)}")
    return request_id


EXCEPTION_HANDLERS: dict[Any, ExceptionHandler] = {
    HooksagaError: answer_problem,
    HTTPException: answer_problem,
    ClientDisconnect: answer_problem,
    Exception: answer_problem,
}
