"""/v1/event-types: the catalogue of event types."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import event_types as answers
from hooksaga.api.http_api import Caller, authorize, checked_model, read_body, services_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import check_list_parameters
from hooksaga.api.query_parameters import id_before, next_cursor, query_flag
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_event_type
from hooksaga.core.event_type_models import NewEventType
from hooksaga.operations import event_types
from hooksaga.operations.check_event_type import check_content
from hooksaga.operations.event_types import EventType, EventTypeContent

WRITE_SCOPES = ("event-types:write", "admin")
READ_SCOPES = (*WRITE_SCOPES, "events:write", "subscriptions:write")
NULL = "null"

Shown = TypeVar("Shown", bound=answers.ListedEventType)


class _Texts(msgspec.Struct):
    """The parts of an entry that are stored as they were written."""

    attributes: msgspec.Raw | UnsetType = UNSET
    schema: msgspec.Raw | UnsetType = UNSET
    sample: msgspec.Raw | UnsetType = UNSET


async def put(request: Request) -> Response:
    """Store an entry: 201 if it is new, 200 if it takes the place of an earlier one."""
    caller = await authorize(request, *WRITE_SCOPES)
    _check_operator(caller)
    name = check_event_type(str(request.path_params["name"]))
    body = await read_body(request, services_of(request).settings.payload_max_bytes)
    content = content_of(body, services_of(request).settings.payload_max_bytes)
    check_content(content)
    done = await services_of(request).subscriptions.run(event_types.put_event_type, name, content)
    return answer_response(_entry(done), 201 if done.created else 200)


def content_of(body: bytes, max_bytes: int) -> EventTypeContent:
    """Read the entry in a body. Raises InvalidInput with the field and the rule."""
    model = checked_model(body, NewEventType, max_bytes)
    texts = msgspec.json.decode(body, type=_Texts)
    return EventTypeContent(
        description=model.description,
        attributes=_text_of(texts.attributes) or "[]",
        schema=_text_of(texts.schema),
        on_mismatch=model.on_mismatch,
        sample=_text_of(texts.sample),
        archived=model.archived,
    )


def _text_of(raw: msgspec.Raw | UnsetType) -> str | None:
    text = NULL if raw is UNSET else bytes(raw).decode()
    return None if text == NULL else text


async def list_all(request: Request) -> Response:
    caller = await authorize(request, *READ_SCOPES)
    check_list_parameters(request, FORMAT, "archived")
    archived = query_flag(request, "archived")
    subscriptions = services_of(request).subscriptions

    async def read(cursor: str | None, limit: int) -> answers.EventTypeList:
        before_id = id_before(cursor)
        rows = await subscriptions.run(
            event_types.list_event_types, archived=archived, before_id=before_id, limit=limit
        )
        items = [_shown(answers.ListedEventType, row) for row in rows]
        return answers.EventTypeList(items, next_cursor(rows, limit))

    return await list_response(request, caller, read, item=answers.ListedEventType, name="event-types")


async def show(request: Request) -> Response:
    await authorize(request, *READ_SCOPES)
    name = name_of(request)
    row = await services_of(request).subscriptions.run(event_types.show_event_type, name)
    return answer_response(_entry(row))


async def delete(request: Request) -> Response:
    """Delete an entry: 204. Events of the type are accepted as those of an unknown type."""
    caller = await authorize(request, *WRITE_SCOPES)
    _check_operator(caller)
    name = name_of(request)
    await services_of(request).subscriptions.run(event_types.delete_event_type, name)
    return Response(status_code=204)


def _check_operator(caller: Caller) -> None:
    if caller.tenant_id is not None:
        message = "the catalogue belongs to all tenants: use a key that is not bound to a tenant"
        raise InvalidInput("tenant_not_allowed", message, status=403)


def name_of(request: Request) -> str:
    """Return the name in the path. One that cannot be stored is unknown like any other."""
    name = str(request.path_params["name"])
    if "\x00" in name or len(name) > 1000 or not name.isascii():
        raise event_types.missing(ascii(name)[1:-1])
    return name


def _entry(row: EventType) -> answers.CatalogueEntry:
    return _shown(answers.CatalogueEntry, row, schema=row.schema or NULL, sample=row.sample or NULL)


def _shown(kind: type[Shown], row: EventType, **more: Any) -> Shown:
    rules = [answers.ExtractedAttributeRule(one.name, one.pointer, one.kind) for one in row.rules]
    return kind.of(row, attributes=rules, **more)


_ONE = "/v1/event-types/{name:path}"

ROUTES = [
    Route("/v1/event-types", list_all, methods=["GET"]),
    Route(_ONE, show, methods=["GET"]),
    Route(_ONE, put, methods=["PUT"]),
    Route(_ONE, delete, methods=["DELETE"]),
]
