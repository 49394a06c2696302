"""JSON responses of the HTTP API: compact JSON in UTF-8."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hooksaga.api.answers.answer import Answer
from hooksaga.api.error_code_views import shown_content
from hooksaga.api.http_api import JSON_TYPE, Caller


def answer_response(answer: Answer, status: int = 200, *, shown_to: Caller | None = None) -> Response:
    """Build the response, with every error code in it in the form that this caller may see."""
    content = answer.content()
    raw = "".join(f',"{name}":{content.pop(name) or "null"}' for name in answer.written_raw)
    text = dump_json(content if shown_to is None else shown_content(shown_to, content))
    return Response(f"{text[:-1]}{raw}}}" if raw else text, status, media_type=JSON_TYPE)


def document_response(content: Mapping[str, Any]) -> Response:
    """Build a response of other JSON, such as the description of the API."""
    return Response(dump_json(content), media_type=JSON_TYPE)


def dump_json(content: Any) -> str:
    """Return JSON text; a lone surrogate, which UTF-8 cannot encode, is escaped."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"))
