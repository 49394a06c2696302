"""Responses of the local HTTP server itself, before any route: complete messages with problems like the API's.

Each closes its connection.
"""

import secrets
from http import HTTPStatus

from hooksaga.api.json_answers import dump_json
from hooksaga.api.problem_answers import RETRY_AFTER_SECONDS
from hooksaga.api.problem_types import problem_type
from hooksaga.core.problems import BY_CODE

INVALID_HOST = "invalid_host"
BAD_REQUEST = "bad_request"
HEAD_TOO_SLOW = "head_too_slow"
HEAD_TOO_LARGE = "head_too_large"
TOO_MANY_CONNECTIONS = "too_many_connections"
CODES = (INVALID_HOST, BAD_REQUEST, HEAD_TOO_SLOW, HEAD_TOO_LARGE, TOO_MANY_CONNECTIONS)


def whole_answer(code: str, detail: str) -> bytes:
    """Build an HTTP/1.1 response with a problem. code is one of CODES."""
    status = BY_CODE[code].status
    body = dump_json(
        {
            "type": problem_type(code),
            "title": code.replace("_", " "),
            "status": status,
            "detail": detail,
            "code": code,
            "request_id": f"req_{secrets.token_hex(12)}",
        }
    ).encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "connection: close",
        *([f"retry-after: {RETRY_AFTER_SECONDS}"] if status == 503 else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
