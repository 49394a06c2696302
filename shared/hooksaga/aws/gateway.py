"""Conversion of API Gateway REST proxy events (v1) to ASGI and back.

Existing libraries fold repeated headers into one, but a repeated Idempotency-Key must stay two.
"""

import base64
import binascii
from typing import Any, cast
from urllib.parse import quote, unquote, urlencode

from starlette.types import ASGIApp, Message, Scope

from hooksaga.api.http_api import OPERATOR, SENT_WHOLE, Caller
from hooksaga.api.problem_answers import problem
from hooksaga.api.public_address import SCOPE_KEY
from hooksaga.aws.triggers import UnexpectedEvent
from hooksaga.core.errors import InvalidInput

Event = dict[str, Any]

PUBLIC_URL_VARIABLE = "PUBLIC_URL"
"""Stage variable with the address of the API."""


async def answer_gateway(app: ASGIApp, event: Event, operator: Caller | None = None) -> dict[str, Any]:
    """Return the application's response to one proxy event, in the gateway's form. operator: a caller without a key.

    A body flagged as base64 is decoded once; a wrong flag is a client error, answered as a problem. The gateway
    must treat every media type as binary: in a text body it silently replaces bytes that are not UTF-8.
    """
    try:
        body = _body(event)
    except InvalidInput as error:
        response = problem(error, _request_id(event), _root_path(event))
        return _answer(response.status_code, response.raw_headers, bytes(response.body))
    exchange = _Exchange(body)
    try:
        await app(_scope(event, operator), exchange.receive, exchange.send)
    except Exception:
        # If the application has responded, it has logged the error, and the client gets its 500.
        if not exchange.answered:
            raise
    return _answer(exchange.status, exchange.headers, bytes(exchange.body))


def _body(event: Event) -> bytes:
    text: object = event.get("body") or ""
    if not isinstance(text, str):
        raise UnexpectedEvent("the body of a request is a text or null")
    if not event.get("isBase64Encoded"):
        return _bytes(text)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(
            "body_not_base64", "the gateway marked the body as base64, but it is not valid base64"
        ) from None


def _bytes(text: str) -> bytes:
    """Encode as UTF-8, so that no two texts become the same bytes: non-ASCII text is then refused where ASCII is
    required, and a lone surrogate as invalid UTF-8."""
    return text.encode(errors="surrogatepass")


def _scope(event: Event, operator: Caller | None) -> Scope:
    root_path = _root_path(event)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": event["httpMethod"],
        "scheme": "https",
        "path": root_path + unquote(event["path"]),
        "raw_path": _bytes(quote(root_path, errors="surrogatepass") + event["path"]),
        "root_path": root_path,
        "query_string": urlencode(_pairs(event, "QueryStringParameters"), errors="surrogatepass").encode(),
        "headers": [(_bytes(name.lower()), _bytes(value)) for name, value in _pairs(event, "Headers")],
        "client": None,
        "server": None,
        "hooksaga.request_id": _request_id(event),
        SCOPE_KEY: _public_url(event),
        OPERATOR: operator,
        SENT_WHOLE: True,
    }


def _public_url(event: Event) -> str | None:
    """Return the API's own address, which the stack wrote into its stage; no caller can set it."""
    variables: Event = event.get("stageVariables") or {}
    return variables.get(PUBLIC_URL_VARIABLE)


def _root_path(event: Event) -> str:
    """Return the prefix of the path: the stage, unless the API has its own domain."""
    context = _object(event.get("requestContext"))
    whole, own = unquote(str(context.get("path") or "")), unquote(event["path"])
    return whole.removesuffix(own) if whole.endswith(own) else ""


def _pairs(event: Event, kind: str) -> list[tuple[str, str]]:
    """Return all values of headers or query parameters, which the gateway gives twice. Either form, a list of values or
    a value may be null, which means that it was not sent."""
    given = _object(event.get(f"multiValue{kind}")) or _object(event.get(kind[0].lower() + kind[1:]))
    return [(name, value) for name, values in given.items() for value in _texts(values)]


def _texts(values: object) -> list[str]:
    several = cast("list[object]", values) if isinstance(values, list) else [values]
    return [value for value in several if isinstance(value, str)]


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _request_id(event: Event) -> str:
    return str(_object(event.get("requestContext")).get("requestId") or "req_unknown")


class _Exchange:
    def __init__(self, body: bytes) -> None:
        self._incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.answered = False

    async def receive(self) -> Message:
        return self._incoming.pop() if self._incoming else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
        else:
            self.body += message.get("body", b"")
            self.answered = not message.get("more_body", False)


def _answer(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> dict[str, Any]:
    return {
        "statusCode": status,
        "multiValueHeaders": _by_name(headers),
        "body": body.decode(),
        "isBase64Encoded": False,
    }


def _by_name(headers: list[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    several: dict[str, list[str]] = {}
    for name, value in headers:
        several.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return several
