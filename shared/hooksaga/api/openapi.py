"""The OpenAPI 3.1 description of the HTTP API, served at /v1/openapi.json and committed as docs/openapi.json.

Request bodies come from the models that check them. A test holds the committed file against this, and another lets a
generator of requests compare every answer of the running API with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api import openapi_attempts, openapi_events
from hooksaga.api import openapi_schemas as schemas
from hooksaga.api import openapi_words as words
from hooksaga.api.answers import subscriptions as answers
from hooksaga.api.answers.answer import Answer
from hooksaga.api.description.schemas import schemas_of
from hooksaga.api.http_api import json_response
from hooksaga.api.openapi_answers import RESPONSES, links_of, problem_responses
from hooksaga.api.openapi_examples import give_examples
from hooksaga.api.openapi_parameters import PARAMETERS
from hooksaga.api.openapi_routing import ROUTING_SCHEMAS
from hooksaga.core.models import (
    BulkChange,
    NewBulkOperation,
    NewSubscription,
    RequeueFilter,
    SecretRotation,
    SubscriptionChange,
)
from hooksaga.core.portal_links import NewPortalLink
from hooksaga.core.product import VERSION

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Operation:
    """One route. answers: status to schema name, None for no body. problems: statuses beyond those of every route."""

    method: str
    path: str
    summary: str
    scopes: tuple[str, ...]
    answers: Mapping[str, str | None]
    problems: str = ""
    body: str | None = None
    body_is_optional: bool = False
    parameters: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ("application/json",)
    answer_type: str = "application/json"


_DEAD_LETTER_FILTERS = ("subscription_id", "event_type", "error_code", "failed_after", "failed_before")
_ATTEMPT_FILTERS = ("subscription_id", "event_type", "status_class", "error_code", "outcome")
_BODY = "400 408 413 415 422"

_OPERATIONS = (
    _Operation(
        "post",
        "/v1/events",
        "Accept one event",
        ("events:write",),
        {"202": "AcceptedEvent", "200": "AcceptedEvent"},
        f"{_BODY} 409",
        "NewEvent",
        parameters=("idempotency_key", "traceparent"),
        media_types=("application/json", "application/cloudevents+json"),
    ),
    _Operation(
        "post",
        "/v1/events/batch",
        "Accept up to 500 events, with an answer each",
        ("events:write",),
        {"200": "BatchAnswer"},
        _BODY,
        "NewEvents",
        parameters=("traceparent",),
    ),
    _Operation(
        "get",
        "/v1/events/{id}",
        "One event, its sagas, their attempts, and how it was routed",
        ("events:write", "admin"),
        {"200": "Event"},
        "404",
        parameters=("event_id",),
    ),
    _Operation(
        "get",
        "/v1/events/{id}/routing",
        "Which subscriptions the event was routed to, and why not to the others",
        ("events:write", "admin"),
        {"200": "EventRouting"},
        "404 422",
        parameters=("event_id", "limit", "routing_cursor"),
    ),
    _Operation(
        "post",
        "/v1/subscriptions",
        "Create a subscription; its secret is shown this once",
        ("subscriptions:write",),
        {"201": "SubscriptionWithSecret"},
        _BODY,
        "NewSubscription",
    ),
    _Operation(
        "get",
        "/v1/subscriptions",
        "List subscriptions, newest first",
        ("subscriptions:write",),
        {"200": "SubscriptionList"},
        "422",
        parameters=("event_type", "limit", "cursor"),
    ),
    _Operation(
        "get",
        "/v1/subscriptions/{id}",
        "Show a subscription",
        ("subscriptions:write",),
        {"200": "Subscription"},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "patch",
        "/v1/subscriptions/{id}",
        "Change a subscription",
        ("subscriptions:write",),
        {"200": "ChangedSubscription"},
        f"{_BODY} 404",
        "SubscriptionChange",
        parameters=("id",),
    ),
    _Operation(
        "delete",
        "/v1/subscriptions/{id}",
        "Deactivate a subscription for good",
        ("subscriptions:write",),
        {"204": None},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/subscriptions/{id}/verify",
        "Send the challenge to the callback URL",
        ("subscriptions:write",),
        {"200": "Subscription"},
        "404 409 422",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/subscriptions/{id}/rotate-secret",
        "Make a new secret; both sign until the old one expires",
        ("subscriptions:write",),
        {"200": "SubscriptionWithSecret"},
        f"{_BODY} 404 409",
        "SecretRotation",
        body_is_optional=True,
        parameters=("id",),
    ),
    _Operation(
        "get",
        "/v1/subscriptions/{id}/health",
        "How a subscription's endpoint does",
        ("subscriptions:write",),
        {"200": "EndpointHealth"},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/portal-links",
        "Make a link to one tenant's own pages",
        ("subscriptions:write",),
        {"201": "PortalLink"},
        f"{_BODY} 409",
        "NewPortalLink",
        body_is_optional=True,
    ),
    _Operation(
        "get",
        "/v1/dead-letters",
        "List dead letters, newest first",
        ("admin",),
        {"200": "DeadLetterList"},
        "422",
        parameters=(*_DEAD_LETTER_FILTERS, "limit", "cursor"),
    ),
    _Operation(
        "post",
        "/v1/dead-letters/requeue",
        "Requeue all dead letters that match",
        ("admin",),
        {"200": "RequeuedMatches"},
        _BODY,
        "RequeueFilter",
        body_is_optional=True,
    ),
    _Operation(
        "get",
        "/v1/dead-letters/{id}",
        "Show a dead letter with its payload",
        ("admin",),
        {"200": "DeadLetterWithPayload"},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/dead-letters/{id}/requeue",
        "Requeue one dead letter as a new saga",
        ("admin",),
        {"201": "Requeued", "200": "Requeued"},
        "404 409",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/sagas/{id}/cancel",
        "End a saga that waits",
        ("admin",),
        {"202": "CanceledSaga", "200": "CanceledSaga"},
        "404 409",
        parameters=("id",),
    ),
    _Operation(
        "get",
        "/v1/attempts",
        "List finished attempts, newest first",
        ("admin",),
        {"200": "LoggedAttemptList"},
        "422",
        parameters=(*_ATTEMPT_FILTERS, "finished_after", "finished_before", "limit", "attempts_cursor"),
    ),
    _Operation(
        "get",
        "/v1/attempts/follow",
        "Attempts as they finish, none left out",
        ("admin",),
        {"200": "FollowedAttempts"},
        "422",
        parameters=(*_ATTEMPT_FILTERS, "limit", "follow_cursor"),
    ),
    _Operation(
        "get",
        "/v1/attempts/{id}",
        "Show an attempt with the headers sent and the answer",
        ("admin",),
        {"200": "WholeAttempt"},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "post",
        "/v1/bulk-operations",
        "Start requeueing, or a backfill, at a steady rate; or count what it would do",
        ("admin",),
        {"201": "BulkOperationStarted", "200": "BulkOperationOrCount"},
        f"{_BODY} 404 409",
        "NewBulkOperation",
    ),
    _Operation(
        "get",
        "/v1/bulk-operations",
        "List bulk operations, newest first",
        ("admin",),
        {"200": "BulkOperationList"},
        "422",
        parameters=("bulk_status", "limit", "cursor"),
    ),
    _Operation(
        "get",
        "/v1/bulk-operations/{id}",
        "Show a bulk operation, and how far it is with each subscription",
        ("admin",),
        {"200": "BulkOperationWithLanes"},
        "404",
        parameters=("id",),
    ),
    _Operation(
        "get",
        "/v1/subscriptions/{id}/stats",
        "How a subscription is doing",
        ("subscriptions:write", "admin"),
        {"200": "SubscriptionStats"},
        "404 422",
        parameters=("id", "window"),
    ),
    _Operation(
        "patch",
        "/v1/bulk-operations/{id}",
        "Go on at another rate",
        ("admin",),
        {"200": "BulkOperationWithLanes"},
        f"{_BODY} 404 409",
        "BulkChange",
        parameters=("id",),
    ),
    *(
        _Operation(
            "post",
            f"/v1/bulk-operations/{{id}}/{verb}",
            summary,
            ("admin",),
            {"200": "BulkOperationWithLanes"},
            "404 409",
            parameters=("id",),
        )
        for verb, summary in (
            ("pause", "Start nothing more for now"),
            ("resume", "Go on where it was paused"),
            ("stop", "End it; what was not started never is by it"),
        )
    ),
    _Operation("get", "/v1/stats", "The backlog now", ("admin",), {"200": "Stats"}),
    _Operation("get", "/v1/openapi.json", "This document", (), {"200": "OpenApi"}),
    _Operation(
        "get", "/v1/docs", "This document, to be read", (), {"200": "ReferencePage"}, answer_type="text/html"
    ),
    _Operation("get", "/healthz", "Whether the database answers", (), {"200": "Health"}),
)


_ANSWERS: tuple[type[Answer], ...] = (
    answers.SubscriptionWithSecret,
    answers.ChangedSubscription,
    answers.SubscriptionList,
    answers.EndpointHealth,
    answers.PortalLink,
)


@cache
def openapi_document() -> Json:
    """The whole document."""
    paths: dict[str, Json] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hooksaga",
            "version": VERSION,
            "summary": "Reliable webhook delivery",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to this document's own URL, so that it leads there behind any prefix.
        "externalDocs": {
            "url": "docs",
            "description": "The same to be read, with every error's cause and cure",
        },
        "tags": _tags(),
        "paths": paths,
        "components": {
            "schemas": schemas_of(_ANSWERS, schemas.SCHEMAS)
            | give_examples(
                words.describe_fields(
                    {
                        **openapi_events.SCHEMAS,
                        **schemas.SCHEMAS,
                        **ROUTING_SCHEMAS,
                        **openapi_attempts.SCHEMAS,
                        **_model_schemas(),
                    }
                )
            ),
            "parameters": PARAMETERS,
            "responses": RESPONSES,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "hs_…"}},
        },
    }


def _operation(operation: _Operation) -> Json:
    described: Json = {
        "operationId": _operation_id(operation),
        "summary": operation.summary,
        "tags": [words.group_of(operation.path)],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in operation.parameters],
        "responses": _responses(operation),
    }
    if operation.scopes:
        described["security"] = [{"key": []}]
    if description := _description(operation):
        described["description"] = description
    if operation.body:
        schema = {"schema": {"$ref": f"#/components/schemas/{operation.body}"}}
        content = {"application/json": schema}
        if "application/cloudevents+json" in operation.media_types:
            content["application/cloudevents+json"] = {"schema": {"$ref": "#/components/schemas/CloudEvent"}}
        described["requestBody"] = {"required": not operation.body_is_optional, "content": content}
    return described


def _description(operation: _Operation) -> str:
    scopes = " or ".join(f"`{scope}`" for scope in operation.scopes)
    needed = f"Needs the scope {scopes}." if scopes else ""
    return " ".join(filter(None, [words.words_for_operation(operation.method, operation.path), needed]))


def _tags() -> list[Json]:
    names = dict.fromkeys(words.group_of(operation.path) for operation in _OPERATIONS)
    return [{"name": name, "description": words.GROUPS.get(name, "")} for name in names]


def _operation_id(operation: _Operation) -> str:
    words = operation.path.removeprefix("/v1").replace("{id}", "one").replace(".json", "")
    return "_".join([operation.method, *words.replace("-", "_").strip("/").split("/")])


def _responses(operation: _Operation) -> Json:
    answers = {
        status: {
            **(_content(name, operation.answer_type, meaning) if name else {"description": meaning}),
            **links_of(_operation_id(operation), status),
        }
        for status, name in operation.answers.items()
        for meaning in [words.words_for_answer(operation.method, operation.path, status) or operation.summary]
    }
    return answers | problem_responses(_problems(operation))


def _problems(operation: _Operation) -> list[str]:
    """A key can be missing or too weak wherever one is needed, and the database away wherever it is asked."""
    keys = ["401", "403", "503"] if operation.scopes else []
    health = ["503"] if operation.path == "/healthz" else []
    return sorted({*operation.problems.split(), *keys, *health})


def _content(schema: str, media_type: str, description: str) -> Json:
    content = {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


def _model_schemas() -> Json:
    models: tuple[type[BaseModel], ...] = (
        NewSubscription,
        SubscriptionChange,
        SecretRotation,
        NewPortalLink,
        RequeueFilter,
        NewBulkOperation,
        BulkChange,
    )
    described: Json = {}
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        described.update(schema.pop("$defs", {}))
        described[model.__name__] = schema
    return described


async def serve_openapi(_request: Request) -> Response:
    """No key is needed: it tells nothing that is not public."""
    return json_response(openapi_document())


ROUTES = [Route("/v1/openapi.json", serve_openapi, methods=["GET"])]
