"""/v1/openapi.json: the description of the API.

It is made when it is first asked for, and what makes it is imported then: no function's start waits for it.
"""

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.json_answers import document_response


@cache
def openapi_document() -> dict[str, Any]:
    """The whole document."""
    from hooksaga.api.description.document import made_document

    return made_document()


async def serve_openapi(_request: Request) -> Response:
    """No key is needed: it tells nothing that is not public."""
    return document_response(openapi_document())


ROUTES = [Route("/v1/openapi.json", serve_openapi, methods=["GET"])]
