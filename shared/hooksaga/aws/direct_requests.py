"""Requests of the API that come by direct invocation: `{"method": …, "path": …}`, without a key.

Who may invoke the function is an operator: AWS has checked that. No client of the gateway can send such an event, as
the gateway makes its own of each request.
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
    """tenant_id: only for this tenant's rows. requested_by: who asks, for the record."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str = Field(pattern="^/")
    query: dict[str, str | int] = Field(default_factory=dict[str, str | int])
    body: dict[str, Any] | None = None
    tenant_id: TenantId | None = None
    requested_by: str = Field(default="admin function", pattern=r"^[ -~]{1,100}$")


REQUESTS = TypeAdapter(DirectRequest)


async def answer_directly(function: ApiFunction, request: DirectRequest) -> dict[str, Any]:
    """`{status, body}` as the route answers. body is JSON text: a payload in it is told to the byte, and an object
    would be written anew on its way."""
    operator = Caller(request.tenant_id, None, is_operator=True, name=request.requested_by)
    answer = await function.answer_request(_proxy_event(request), operator)
    return {"status": answer["statusCode"], "body": answer["body"]}


def _proxy_event(request: DirectRequest) -> dict[str, Any]:
    """The gateway's form of it."""
    return {
        "httpMethod": request.method,
        "path": quote(request.path),
        "multiValueQueryStringParameters": {name: [str(value)] for name, value in request.query.items()},
        "multiValueHeaders": {"content-type": [JSON_TYPE]},
        "body": None if request.body is None else json.dumps(request.body),
        "isBase64Encoded": False,
        "requestContext": {"requestId": f"req_{secrets.token_hex(12)}"},
    }
