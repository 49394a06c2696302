"""/v1/openapi.json: the description of the API.

It is built at the first request, and its generator is imported then, so that no function's start waits for it.
"""

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.json_answers import document_response


@cache
def openapi_document() -> dict[str, Any]:
    from hooksaga.api.description.document import build_document

    return build_document()


async def serve_openapi(_request: Request) -> Response:
    """Serve the document without a key: its content is public."""
    return document_response(openapi_document())


ROUTES = [Route("/v1/openapi.json", serve_openapi, methods=["GET"])]
