"""HTTP front end that converts requests to API Gateway REST proxy events and functions' answers to responses.

It is configured like the REST API on AWS: every body is binary, so a function gets the bytes that were sent. The URL
is that of a custom domain, without a stage in its path. Unrouted requests get the gateway's own responses.
"""

import asyncio
import base64
import binascii
import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from hooksaga.api.http_api import is_fixed
from hooksaga.aws.gateway_answers import headers_of, problem_text, status_of
from hooksaga.aws.gateway_routes import gateway_routes
from hooksaga.local.sqs.functions import LambdaFunction, RequestTooLarge
from hooksaga.local.sqs.runtime_api import ACCOUNT, HOST
from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.descriptors import BESIDE_POSTS
from hooksaga.worker.http_server import http_server
from hooksaga.worker.listening import listen

STAGE = "local"
MAX_BODY_BYTES = 10 * 1024 * 1024
INTEGRATION_SECONDS = 29.0
STOP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Target:
    """A function, the resource that matches a path, and the path parameters."""

    function: LambdaFunction
    resource: str
    parameters: dict[str, str]


class Front:
    """Listens on 127.0.0.1. `routes`: the functions by route."""

    def __init__(self, routes: Sequence[tuple[LambdaFunction, Sequence[BaseRoute]]]) -> None:
        self._routes = sorted(
            gateway_routes(routes), key=lambda one: (not is_fixed(one.route), one.methods is None)
        )

    async def start(self, port: int) -> str:
        """Start listening and return the URL. Raises OSError if the port is in use."""
        listening = listen(port)
        self._server = http_server(
            self._serve, ConnectionTable(reserved=BESIDE_POSTS), stop_seconds=STOP_SECONDS
        )
        self._serving = asyncio.create_task(self._server.serve([listening]))
        return f"http://{HOST}:{listening.getsockname()[1]}"

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._serving

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        with contextlib.suppress(ClientDisconnect):
            answer = await self._handle(request)
            await answer(scope, receive, send)

    async def _handle(self, request: Request) -> Response:
        target = self._find(request.scope["path"], request.method)
        if target is None:
            return _own_answer("MISSING_AUTHENTICATION_TOKEN")
        try:
            async with asyncio.timeout(INTEGRATION_SECONDS):
                event = proxy_event(request, target, await _whole_body(request))
                outcome = await target.function.invoke(event)
        except TimeoutError:
            return _own_answer("INTEGRATION_TIMEOUT")
        except RequestTooLarge:
            return _own_answer("REQUEST_TOO_LARGE")
        if outcome.error is not None:
            return _own_answer("DEFAULT_5XX")
        return response_of(outcome.payload)

    def _find(self, path: str, method: str) -> Target | None:
        """Match like the gateway: fixed paths first, and of one path a method before any method."""
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        for one in self._routes:
            match, found = one.route.matches(scope)
            if match is not Match.NONE and (one.methods is None or method in one.methods):
                parameters = {name: str(value) for name, value in found["path_params"].items()}
                return Target(one.owner, one.route.path, parameters)
        return None


async def _whole_body(request: Request) -> bytes:
    """Raises RequestTooLarge, and ClientDisconnect if the client disconnects early."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise RequestTooLarge
    return bytes(body)


def proxy_event(request: Request, target: Target, body: bytes) -> dict[str, Any]:
    """Return the REST API (v1) proxy event of a request, with all media types binary."""
    path = request.scope["raw_path"].decode("latin-1")
    headers = _several(request.headers.items())
    query = _several(parse_qsl(request.url.query, keep_blank_values=True))
    return {
        "resource": target.resource,
        "path": path,
        "httpMethod": request.method,
        "headers": _last(headers),
        "multiValueHeaders": headers,
        "queryStringParameters": _last(query) or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": target.parameters or None,
        "stageVariables": None,
        "requestContext": _request_context(request, target.resource, path),
        "body": base64.b64encode(body).decode() if body else None,
        "isBase64Encoded": bool(body),
    }


def _request_context(request: Request, resource: str, path: str) -> dict[str, Any]:
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": request.headers.get("host"),
        "httpMethod": request.method,
        "identity": {
            "sourceIp": request.client and request.client.host,
            "userAgent": request.headers.get("user-agent"),
        },
        "path": path,
        "protocol": "HTTP/1.1",
        "requestId": str(uuid.uuid4()),
        "requestTimeEpoch": int(time.time() * 1000),
        "resourcePath": resource,
        "stage": STAGE,
    }


def _several(pairs: Any) -> dict[str, list[str]]:
    several: dict[str, list[str]] = {}
    for name, value in pairs:
        several.setdefault(name, []).append(value)
    return several


def _last(several: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: values[-1] for name, values in several.items()}


def response_of(payload: Any) -> Response:
    """Convert a function's answer to an HTTP response; a malformed one is a 502, as on AWS."""
    if not isinstance(payload, dict) or not isinstance(
        cast("dict[str, Any]", payload).get("statusCode"), int
    ):
        return _own_answer("DEFAULT_5XX")
    answer = cast("dict[str, Any]", payload)
    headers = MutableHeaders(answer.get("headers") or {})
    for name, values in (answer.get("multiValueHeaders") or {}).items():
        del headers[name]
        for value in values:
            headers.append(name, value)
    del headers["content-length"]
    body: str = answer.get("body") or ""
    try:
        content = base64.b64decode(body, validate=True) if answer.get("isBase64Encoded") else body.encode()
    except binascii.Error:
        return _own_answer("DEFAULT_5XX")
    response = Response(content, answer["statusCode"])
    response.raw_headers = [*headers.raw, (b"content-length", b"%d" % len(content))]
    return response


def _own_answer(kind: str) -> Response:
    body = problem_text(kind, request_id=str(uuid.uuid4()), root_path="").encode()
    return Response(body, status_of(kind), headers_of(kind))
