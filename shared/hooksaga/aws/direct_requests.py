"""API requests by direct invocation: `{"method": …, "path": …}`, without a key.

Every principal that may invoke the function is an operator; AWS has checked that. No client of the gateway can send
such an event, because the gateway builds its own event from each request.
"""

import json
import secrets
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field, TypeAdapter

from hooksaga.api.http_api import JSON_TYPE, Caller
from hooksaga.aws.api_function import ApiFunction
from hooksaga.core.models import StrictModel, TenantId


class DirectRequest(StrictModel):
    """A direct request. tenant_id: only for this tenant's rows. requested_by: the caller's name, for the record."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str = Field(pattern="^/")
    query: dict[str, str | int] = Field(default_factory=dict[str, str | int])
    body: dict[str, Any] | None = None
    tenant_id: TenantId | None = None
    requested_by: str = Field(default="admin function", pattern=r"^[ -~]{1,100}$")


REQUESTS = TypeAdapter(DirectRequest)


async def answer_directly(function: ApiFunction, request: DirectRequest) -> dict[str, Any]:
    """Return `{status, body}` of the route's response. body is JSON text, so that a payload in it stays equal to the
    byte: an object would be serialized again on its way."""
    operator = Caller(request.tenant_id, None, is_operator=True, name=request.requested_by)
    answer = await function.answer_request(_proxy_event(request), operator)
    return {"status": answer["statusCode"], "body": answer["body"]}


def _proxy_event(request: DirectRequest) -> dict[str, Any]:
    return {
        "httpMethod": request.method,
        "path": quote(request.path),
        "multiValueQueryStringParameters": {name: [str(value)] for name, value in request.query.items()},
        "multiValueHeaders": {"content-type": [JSON_TYPE]},
        "body": None if request.body is None else json.dumps(request.body),
        "isBase64Encoded": False,
        "requestContext": {"requestId": f"req_{secrets.token_hex(12)}"},
    }
