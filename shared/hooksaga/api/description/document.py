"""The OpenAPI 3.1 description of the HTTP API, committed as docs/openapi.json.

Responses come from the classes that are serialized, request bodies from the models that validate them. A test compares
the committed file with this, and another compares every response of the running API to generated requests with it.
"""

from typing import Any

from pydantic import BaseModel

from hooksaga.api.answers.answer import Answer, reference_to
from hooksaga.api.answers.bulk_operations import BulkCount
from hooksaga.api.answers.events import RefusedEvent
from hooksaga.api.answers.problems import Problem
from hooksaga.api.description.operation import Given, Operation
from hooksaga.api.description.operations import GROUPS, OPERATIONS
from hooksaga.api.description.other_schemas import OTHER_SCHEMAS
from hooksaga.api.description.parameters import PARAMETERS
from hooksaga.api.description.requests import OF_EVENTS, schemas_of_models
from hooksaga.api.description.responses import RESPONSES, links_of, problem_responses
from hooksaga.api.description.schemas import schemas_of
from hooksaga.api.exports import NEXT_HEADER
from hooksaga.core.product import VERSION

Json = dict[str, Any]

_ANSWERED_WITHIN = (RefusedEvent, BulkCount, Problem)
"""Classes that no operation names as its response."""


_EXPORTED = ("text/csv", "application/x-ndjson")
_NEXT: Json = {
    "schema": {"type": "string", "pattern": "^[0-9A-F]+$"},
    "description": "Of an export that ended before the last item, on AWS or by `limit`: pass it as `cursor` to get the "
    "rest.",
}


def build_document() -> Json:
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hooksaga",
            "version": VERSION,
            "summary": "Reliable webhook delivery",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to this document's own URL, so that it is correct behind any prefix.
        "externalDocs": {
            "url": "docs",
            "description": "Web page with the cause and solution of each error",
        },
        "tags": _tags(),
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "parameters": PARAMETERS,
            "responses": RESPONSES,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "hs_…"}},
        },
    }


def _schemas() -> Json:
    answered = [given.what for operation in OPERATIONS for given in operation.answers.values()]
    classes: list[type[Answer]] = [what for what in answered if isinstance(what, type)]
    bodies = [operation.body for operation in OPERATIONS]
    models: list[type[BaseModel]] = [body for body in bodies if isinstance(body, type)]
    return {
        **OF_EVENTS,
        **schemas_of([*classes, *_ANSWERED_WITHIN]),
        **OTHER_SCHEMAS,
        **schemas_of_models(models),
    }


def _operation(operation: Operation) -> Json:
    described: Json = {
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.group],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in operation.all_parameters],
        "responses": _responses(operation),
    }
    if operation.scopes:
        described["security"] = [{"key": []}]
    if operation.description:
        described["description"] = operation.description
    if operation.body_name:
        content = {"application/json": _media(operation.body_name)}
        if "application/cloudevents+json" in operation.media_types:
            content["application/cloudevents+json"] = _media("CloudEvent")
        described["requestBody"] = {"required": not operation.body_is_optional, "content": content}
    return described


def _tags() -> list[Json]:
    names = dict.fromkeys(operation.group for operation in OPERATIONS)
    return [{"name": name, "description": GROUPS.get(name, "")} for name in names]


def _responses(operation: Operation) -> Json:
    answers = {
        status: {**_response(operation, given), **links_of(operation.id, status)}
        for status, given in operation.answers.items()
    }
    return answers | problem_responses(operation.problem_statuses)


def _response(operation: Operation, given: Given) -> Json:
    described: Json = {"description": given.meaning or operation.summary}
    if given.schema_name:
        described["content"] = {operation.answer_type: _media(given.schema_name)}
    if operation.export:
        described["content"] |= {media_type: {"schema": {"type": "string"}} for media_type in _EXPORTED}
        described["headers"] = {NEXT_HEADER: _NEXT}
    return described


def _media(schema_name: str) -> Json:
    return {"schema": {"$ref": reference_to(schema_name)}}
