"""Refuse HTTP/1.1 requests that do not name exactly one host (RFC 9112 §3.2). On AWS the gateway refuses them."""

import re

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hooksaga.api.http_api import request_id_of
from hooksaga.api.problem_answers import problem
from hooksaga.api.request_trace import correlation_id_of_request
from hooksaga.core.errors import InvalidInput
from hooksaga.worker.http_answers import INVALID_HOST

_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


class OneHost:
    """An ASGI application that forwards requests that name one host, or none in HTTP/1.0."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = _fault_of(scope)
        if fault is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = problem(
            InvalidInput(INVALID_HOST, fault, status=400),
            request_id_of(request),
            correlation_id=correlation_id_of_request(request),
        )
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)


def _fault_of(scope: Scope) -> str | None:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) > 1:
        return f"a request has one Host header, this one has {len(hosts)}"
    if not hosts:
        return None if scope["http_version"] == "1.0" else "a request of HTTP/1.1 has a Host header"
    return None if _HOST.fullmatch(hosts[0]) else "the Host header names no host"
