"""Mapping from errors to responses, and their logging.

Every error is an RFC 9457 problem with a stable `code` and a `request_id`. A client error is never a 5xx.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ExceptionHandler

from hooksaga.api.answers.problems import ItemProblem, Problem
from hooksaga.api.http_api import Forbidden, Unauthorized, is_fixed, request_id_of, root_path_of
from hooksaga.api.json_answers import dump_json
from hooksaga.api.problem_types import problem_type
from hooksaga.api.request_trace import correlation_id_of_request
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
from hooksaga.runtime.telemetry import logger

RETRY_AFTER_SECONDS = "1"


def problem(
    error: Exception, request_id: str, root_path: str = "", correlation_id: str | None = None
) -> Response:
    """Build the response to an error. Unknown errors are logged with their trace and answered without detail. For 503
    responses with one kind of cause, one line a second is logged, with their count.

    root_path is the request's, as for problem_type.
    """
    status, code, headers = _status_of(error)
    if status >= 500:
        keys = {"request_id": request_id, "code": code, "correlation_id": correlation_id}
        _log_failure(_requests, status, error, keys)
    answer = Problem(
        type=problem_type(code, root_path),
        title=code.replace("_", " "),
        status=status,
        detail=_detail(error, status),
        code=code,
        request_id=request_id,
        field=_field_of(error),
    )
    text = dump_json(answer.content())
    return Response(text, status, headers=headers, media_type="application/problem+json")


def _field_of(error: Exception) -> str | UnsetType:
    return error.field if isinstance(error, InvalidInput) and error.field else UNSET


def _log_failure(lines: UnavailableLines, status: int, error: Exception, keys: dict[str, str | None]) -> None:
    """Log a server error: one line each, but one line a second for 503 responses with one kind of cause."""
    if status == 503:
        lines.note((str(keys["code"]), type(error).__name__), error, keys)
    else:
        lines.write(error, keys)


def _write(message: str, error: Exception, keys: Mapping[str, object]) -> None:
    logger.error(message, exc_info=error, extra=dict(keys))


_requests = UnavailableLines(partial(_write, "request failed"))
_items = UnavailableLines(partial(_write, "item failed"))


def item_problem(error: HooksagaError, root_path: str = "") -> ItemProblem:
    """Build the problem of one item of a batch, or of an action that was not an HTTP request.

    Logged as problem() does.
    """
    status, code, _ = _status_of(error)
    if status >= 500:
        _log_failure(_items, status, error, {"code": code})
    kind = problem_type(code, root_path)
    return ItemProblem(type=kind, status=status, code=code, detail=str(error), field=_field_of(error))


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
"""Status, code and headers by error class. An empty code means the error's own code."""

SHARED_PATHS = {"/v1/events": ("GET", "HEAD", "POST")}
"""The methods of the paths that several functions serve: no function has all routes of such a path."""

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
            return "the database rejects one of the values"
        case DatabaseUnavailable() | RowRefused() | SchemaMismatch():
            return (
                "the database is unavailable or accepts no writes; the call may or may not have been executed: "
                "repeat it"
            )
        case HTTPException():
            return error.detail
        case _ if status == 500:
            return "internal error; it is logged under this request_id"
        case _:
            return str(error)


async def answer_problem(request: Request, error: Exception) -> Response:
    """Handle an exception of the application."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        error.headers = {**(error.headers or {}), "Allow": ", ".join(_methods_of_path(request))}
    return problem(error, request_id_of(request), root_path_of(request), correlation_id_of_request(request))


def _methods_of_path(request: Request) -> list[str]:
    """Return the methods of all routes of the path: the first matching route knows only its own."""
    routes = (route for route in request.app.routes if isinstance(route, Route) and route.methods)
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    chosen = [route for route in fitting if is_fixed(route)] or fitting
    elsewhere = {method for route in chosen for method in SHARED_PATHS.get(route.path, ())}
    return sorted(elsewhere | {method for route in chosen for method in route.methods or ()})


EXCEPTION_HANDLERS: dict[Any, ExceptionHandler] = {
    HooksagaError: answer_problem,
    HTTPException: answer_problem,
    ClientDisconnect: answer_problem,
    Exception: answer_problem,
}
