"""An HTTP front that turns requests into API Gateway's REST proxy events, and functions' answers into responses.

It is configured as the REST API is on AWS: every body is binary, so a function gets exactly the bytes that were sent.
The URL is that of a domain of one's own: it has no stage in its path. What no function answers is answered as the
gateway does.
"""

import asyncio
import base64
import binascii
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import CIMultiDict
from starlette.routing import BaseRoute, Match, Route

from infra.gateway_answers import headers_of, problem_text, status_of
from infra.local.sqs.functions import LambdaFunction, RequestTooLarge
from infra.local.sqs.runtime_api import ACCOUNT, HOST
from shared.runtime.http_api import is_fixed

STAGE = "local"
MAX_BODY_BYTES = 10 * 1024 * 1024
INTEGRATION_SECONDS = 29.0
STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Target:
    """A function, the resource of its that a path belongs to, and the parameters in the path."""

    function: LambdaFunction
    resource: str
    parameters: dict[str, str]


class Front:
    """Listens on 127.0.0.1. `routes` says which function answers what."""

    def __init__(self, routes: Sequence[tuple[LambdaFunction, Sequence[BaseRoute]]]) -> None:
        every = [(function, route) for function, own in routes for route in own if isinstance(route, Route)]
        self._routes = sorted(every, key=lambda pair: not is_fixed(pair[1]))

    async def start(self, port: int) -> str:
        """The URL. Raises OSError when the port is taken."""
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None), shutdown_timeout=STOP_SECONDS
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, port, backlog=1024)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        return f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening; requests under way may end."""
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        target = self._find(request.path)
        if target is None:
            return _own_answer("MISSING_AUTHENTICATION_TOKEN")
        try:
            body = await request.clone(client_max_size=MAX_BODY_BYTES).read()
            event = proxy_event(request, target, body)
            async with asyncio.timeout(INTEGRATION_SECONDS):
                outcome = await target.function.invoke(event)
        except TimeoutError:
            return _own_answer("INTEGRATION_TIMEOUT")
        except (RequestTooLarge, web.HTTPRequestEntityTooLarge):
            return _own_answer("REQUEST_TOO_LARGE")
        if outcome.error is not None:
            return _own_answer("DEFAULT_5XX")
        return response_of(outcome.payload)

    def _find(self, path: str) -> Target | None:
        """By the path alone, fixed ones first, as the gateway does for resources that take any method."""
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        for function, route in self._routes:
            match, found = route.matches(scope)
            if match is not Match.NONE:
                parameters = {name: str(value) for name, value in found["path_params"].items()}
                return Target(function, route.path, parameters)
        return None


def proxy_event(request: web.BaseRequest, target: Target, body: bytes) -> dict[str, Any]:
    """The event of a REST API (v1) with proxy integration, for an API whose media types are all binary."""
    path = request.raw_path.partition("?")[0]
    headers = _several(request.headers.items())
    query = _several(parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True))
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


def _request_context(request: web.BaseRequest, resource: str, path: str) -> dict[str, Any]:
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": request.host,
        "httpMethod": request.method,
        "identity": {"sourceIp": request.remote, "userAgent": request.headers.get("user-agent")},
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


def response_of(payload: Any) -> web.Response:
    """A function's answer as an HTTP response; one that is not of the gateway's form is a fault, as there."""
    if not isinstance(payload, dict) or not isinstance(
        cast("dict[str, Any]", payload).get("statusCode"), int
    ):
        return _own_answer("DEFAULT_5XX")
    answer = cast("dict[str, Any]", payload)
    headers: CIMultiDict[str] = CIMultiDict(answer.get("headers") or {})
    for name, values in (answer.get("multiValueHeaders") or {}).items():
        headers.popall(name, None)
        for value in values:
            headers.add(name, value)
    headers.popall("content-length", None)
    body: str = answer.get("body") or ""
    try:
        content = base64.b64decode(body, validate=True) if answer.get("isBase64Encoded") else body.encode()
    except binascii.Error:
        return _own_answer("DEFAULT_5XX")
    return web.Response(status=answer["statusCode"], headers=headers, body=content)


def _own_answer(kind: str) -> web.Response:
    body = problem_text(kind, request_id=str(uuid.uuid4()), root_path="").encode()
    return web.Response(status=status_of(kind), body=body, headers=headers_of(kind))
