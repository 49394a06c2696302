"""Responses of API Gateway itself, as problems of the same form as the functions' responses.

The template and the local front end of SQS mode both use them.
"""

import json

from hooksaga.api.problem_answers import RETRY_AFTER_SECONDS
from hooksaga.api.problem_types import problem_type
from hooksaga.core.problems import BY_CODE

CODES = {
    "MISSING_AUTHENTICATION_TOKEN": "route_not_found",
    "THROTTLED": "too_many_requests",
    "WAF_FILTERED": "request_blocked",
    "REQUEST_TOO_LARGE": "body_too_large",
    "INTEGRATION_TIMEOUT": "timeout",
    "INTEGRATION_FAILURE": "function_unavailable",
    "DEFAULT_4XX": "bad_request",
    "DEFAULT_5XX": "internal_error",
}
"""Error codes by the gateway's response types. No route requires a gateway token: a missing one means no such route."""


def status_of(kind: str) -> int:
    """Return the status of one of the gateway's own responses."""
    return BY_CODE[CODES[kind]].status


def headers_of(kind: str) -> dict[str, str]:
    """Return the headers, with Retry-After where a retry helps."""
    headers = {"content-type": "application/problem+json"}
    return {**headers, "retry-after": RETRY_AFTER_SECONDS} if status_of(kind) in (429, 503) else headers


def problem_text(kind: str, *, request_id: str, root_path: str) -> str:
    """Return the body. root_path is given, because the gateway cannot cut it out of a request's path."""
    problem = BY_CODE[CODES[kind]]
    content = {
        "type": problem_type(problem.code, root_path),
        "title": problem.code.replace("_", " "),
        "status": problem.status,
        "detail": problem.cause.replace("`", ""),
        "code": problem.code,
        "request_id": request_id,
    }
    return json.dumps(content)
