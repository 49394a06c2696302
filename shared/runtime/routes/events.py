"""POST /v1/events and GET /v1/events/{id}."""

import re
from dataclasses import asdict
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shared.core.errors import HooksagaError, NotFound
from shared.core.event_input import read_event
from shared.core.models import rfc3339
from shared.runtime.http_api import authorize, dump_json, json_response, read_body, services_of
from shared.stages import inspect
from shared.stages.accept_events import AcceptedEvent
from shared.stages.deliver import event_id_text
from shared.stages.inspect import EventView, SagaView

_EVENT_ID = re.compile(r"evt_([0-9a-f]{32})")


async def post_event(request: Request) -> Response:
    """202 with the new event, or 200 with the first one when the key was used before for the same content."""
    services = services_of(request)
    caller = await authorize(request, "events:write")
    max_bytes = services.settings.payload_max_bytes
    draft = read_event(
        await read_body(request, max_bytes),
        max_bytes=max_bytes,
        idempotency_keys=request.headers.getlist("idempotency-key"),
        tenant_id=caller.tenant_id,
    )
    answer = await services.accept.submit(draft)
    if isinstance(answer, HooksagaError):
        raise answer
    return json_response(_accepted(answer), 200 if answer.duplicate else 202)


def _accepted(event: AcceptedEvent) -> dict[str, Any]:
    return {
        "id": event_id_text(event.webhook_id),
        "event_type": event.event_type,
        "created_at": rfc3339(event.created_at),
        "duplicate": event.duplicate,
    }


async def get_event(request: Request) -> Response:
    """The event, its sagas, each saga's attempts. The payload is shown to the byte."""
    caller = await authorize(request, "admin", "events:write")
    webhook_id = webhook_id_of(str(request.path_params["id"]))
    view = await services_of(request).admin.run(
        lambda connection: inspect.show_event(connection, webhook_id, tenant_id=caller.tenant_id)
    )
    return Response(event_json(view), media_type="application/json")


def webhook_id_of(text: str) -> UUID:
    """The id behind `evt_…`. Raises NotFound for what is no event's id."""
    found = _EVENT_ID.fullmatch(text)
    if not found:
        raise NotFound("event_not_found", "an event's id is evt_ and 32 hex digits")
    return UUID(found[1])


def event_json(view: EventView) -> str:
    """The answer's JSON text. The payload is put in as it is stored, because re-writing it could change it."""
    head = dump_json(
        {
            "id": event_id_text(view.webhook_id),
            "event_type": view.event_type,
            "tenant_id": view.tenant_id,
            "created_at": rfc3339(view.created_at),
            "sagas": [_saga(saga) for saga in view.sagas],
        }
    )
    return f'{head[:-1]},"payload":{view.payload}}}'


def _saga(saga: SagaView) -> dict[str, Any]:
    times = {"next_attempt_at": rfc3339(saga.next_attempt_at), "created_at": rfc3339(saga.created_at)}
    return {**asdict(saga), **times, "attempts": [_attempt(attempt) for attempt in saga.attempts]}


def _attempt(attempt: inspect.Attempt) -> dict[str, Any]:
    fields = asdict(attempt)
    del fields["saga_id"]
    for name in ("attempt_at", "leased_at", "finished_at"):
        fields[name] = rfc3339(fields[name])
    return fields


INGEST_ROUTES = [Route("/v1/events", post_event, methods=["POST"])]
ADMIN_ROUTES = [Route("/v1/events/{id}", get_event, methods=["GET"])]
