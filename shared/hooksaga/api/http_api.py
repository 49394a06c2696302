"""Common parts of the HTTP API: authorization by key, bodies, and ids in paths."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from hooksaga.api.services import Services
from hooksaga.core.errors import HooksagaError, InvalidInput, InvalidPart, NotFound
from hooksaga.core.event_input import check_json_syntax, check_json_text
from hooksaga.core.media_types import is_json, is_utf8, media_type_of
from hooksaga.operations.api_keys import hash_api_key
from hooksaga.operations.requester import Requester

JSON_TYPE = "application/json"
ANY_JSON = "*/json or */*+json"
BODY_SECONDS = 30
MAX_ID = 2**63 - 1

ERASE_SCOPE = "events:erase"
"""Scope of a key that may erase the content of events, for good."""

VERIFY_SCOPE = "subscriptions:verify"
"""Scope of a key that may create subscriptions as verified, without a challenge."""

OPERATOR = "hooksaga.operator"
"""In the scope of a request that came without HTTP: the Caller, who is an operator."""

SENT_WHOLE = "hooksaga.sent_whole"
"""In the scope of a request: the server sends the answer as a whole, within limits of its size and time."""

Model = TypeVar("Model", bound=BaseModel)


class Unauthorized(HooksagaError):
    """No key, or one that is not valid (any more). The response does not say which."""


class Forbidden(HooksagaError):
    """The key is valid but lacks the scope."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. tenant_id None: may act for every tenant. key_id None: without a key, named by `name`.

    is_operator: the caller runs the installation, with an `admin` key that is bound to no tenant. All others are
    subscribers or producers, who must not learn about the inside of this network. may_verify: the key has the scope
    that lets it vouch for addresses.
    """

    tenant_id: str | None
    key_id: int | None
    is_operator: bool = False
    name: str | None = None
    may_verify: bool = False

    @property
    def requester(self) -> Requester:
        """The caller, as it is recorded with what it asks for."""
        return Requester(self.tenant_id, self.name or "api key", self.key_id)


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def authorize(request: Request, *scopes: str) -> Caller:
    """Return the caller of the bearer key, which must have one of the scopes. Raises Unauthorized or Forbidden.

    An operator that the server itself put into the ASGI scope, which no request can do, needs no key.
    """
    operator: Caller | None = request.scope.get(OPERATOR)
    if operator is not None:
        return operator
    found = await services_of(request).key_checks.check(hash_api_key(bearer_of(request)))
    if found is None:
        raise Unauthorized("the key is unknown or revoked")
    if not set(scopes) & set(found.scopes):
        raise Forbidden(f"this key needs one of the scopes: {', '.join(scopes)}")
    is_operator = found.tenant_id is None and "admin" in found.scopes
    return Caller(found.tenant_id, found.id, is_operator, may_verify=VERIFY_SCOPE in found.scopes)


def bearer_of(request: Request) -> str:
    """Return the key as it was sent. Raises Unauthorized without one."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthorized("a key is required: Authorization: Bearer hs_…")
    return key.strip()


def media_type_of_request(request: Request) -> str:
    """Return the content type without its parameters, in lower case; JSON if none is given."""
    return media_type_of(request.headers.get("content-type", "")) or JSON_TYPE


async def read_body(request: Request, max_bytes: int, *, media_type: str = JSON_TYPE) -> bytes:
    """Read the whole body, of this type, which may be ANY_JSON.

    Raises InvalidInput when it is larger than max_bytes, compressed, of another type or charset, or too slow.
    """
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise InvalidInput("body_compressed", "the body must not be compressed", status=415)
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
            raise InvalidInput("body_too_large", f"the body must be at most {max_bytes} bytes", status=413)
    return bytes(body)


async def read_model(request: Request, model: type[Model], *, empty: bytes | None = None) -> Model:
    """Read the body as a validated model. `empty` replaces an empty body, where that is allowed."""
    max_bytes = services_of(request).settings.payload_max_bytes
    body = await read_body(request, max_bytes)
    return checked_model(empty if empty is not None and not body else body, model, max_bytes)


def checked_model(body: bytes, model: type[Model], max_bytes: int) -> Model:
    """Return a body as a validated model. Raises InvalidInput with the field and the rule."""
    check_json_text(body, max_bytes)
    check_json_syntax(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid_field(error) from None


def invalid_field(error: ValidationError) -> InvalidInput:
    """Return the error for the first rule that the input breaks."""
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    if isinstance(part := problem.get("ctx", {}).get("error"), InvalidPart):
        field += part.place
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "json_invalid":
        return InvalidInput("invalid_json", f"the body is not valid JSON: {message}")
    return InvalidInput("invalid_field", f"{field or 'the body'}: {message}", field=field, status=422)


def path_id(request: Request, missing: NotFound) -> int:
    """Return the integer id in the path. Raises `missing` for any text that cannot be an id."""
    text = str(request.path_params["id"])
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and 0 < int(text) <= MAX_ID):
        raise missing
    return int(text)


def subscription_id_of(request: Request) -> int:
    """Return the id of a subscription in the path. Raises NotFound `subscription_not_found`."""
    return path_id(request, NotFound("subscription_not_found", "there is no such subscription"))


def is_fixed(route: BaseRoute) -> bool:
    return isinstance(route, Route) and not route.param_convertors


def root_path_of(request: Request) -> str:
    """Return the prefix of this API's paths in the URL: nothing, or a gateway's stage."""
    return str(request.scope.get("root_path", ""))


def request_id_of(request: Request) -> str:
    """Return the request's id, generated here: a client's own id would enter the logs unchecked."""
    request_id: str = request.scope.setdefault("hooksaga.request_id", f"req_{secrets.token_hex(12)}")
    return request_id
