"""Routes of events: accept single events, batches and CloudEvents, and show the processing of one."""

import re
from typing import TypedDict
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.adapters.database import Connection
from hooksaga.api.answers import events as answers
from hooksaga.api.answers.attempts import Attempt
from hooksaga.api.http_api import (
    ANY_JSON,
    Caller,
    authorize,
    media_type_of_request,
    read_body,
    root_path_of,
    services_of,
    subscription_id_of,
)
from hooksaga.api.json_answers import answer_response
from hooksaga.api.lists import check_list_parameters
from hooksaga.api.problem_answers import item_problem
from hooksaga.api.query_parameters import query_limit
from hooksaga.api.request_trace import traceparent_of
from hooksaga.api.routes import find_events
from hooksaga.api.routing_answer import event_routing, read_place, routing_answer, waiting_fields
from hooksaga.api.services import Services
from hooksaga.core import cloud_events
from hooksaga.core.attempts import masked_headers, started_by, trigger_of
from hooksaga.core.cloud_event_attributes import STRUCTURED_TYPE
from hooksaga.core.errors import HooksagaError, InvalidInput, NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_input import EventDraft, read_batch, read_event
from hooksaga.core.events_for_tests import WantedTestEvent, draft_test_event, read_test_event
from hooksaga.core.moments import utc_text
from hooksaga.core.trace import delivery_traceparent
from hooksaga.operations import inspect
from hooksaga.operations.attempt_log import sent_format_headers, sent_headers
from hooksaga.operations.event_types import sample_of_type
from hooksaga.operations.explain import Routing, explain_event
from hooksaga.operations.inspect import EventView, SagaView
from hooksaga.operations.tested_subscription import subscription_to_test
from hooksaga.stages.accept_events import AcceptedEvent

BATCH_MAX_BYTES = 4 * 1024 * 1024
"""Limit that the gateway and its function accept, with room for their own encoding."""

_EVENT_ID = re.compile(r"evt_([0-9a-f]{32})")


async def post_event(request: Request) -> Response:
    """Accept an event: 202 with the new one, or 200 with the first one if the key was used for the same content."""
    caller = await authorize(request, "events:write")
    answer = await services_of(request).accept.submit(await _read_draft(request, caller))
    if isinstance(answer, HooksagaError):
        raise answer
    return answer_response(_accepted(answer), 200 if answer.duplicate else 202)


class _Given(TypedDict):
    """Context in which every form of an event is read."""

    max_bytes: int
    tenant_id: str | None
    traceparent: str | None


async def _read_draft(request: Request, caller: Caller) -> EventDraft:
    max_bytes = services_of(request).settings.payload_max_bytes
    keys = request.headers.getlist("idempotency-key")
    given = _Given(max_bytes=max_bytes, tenant_id=caller.tenant_id, traceparent=traceparent_of(request))
    media_type = media_type_of_request(request)
    is_structured = media_type == STRUCTURED_TYPE
    if not (is_structured or cloud_events.is_binary_mode(media_type, request.headers.keys())):
        body = await read_body(request, max_bytes)
        return read_event(body, idempotency_keys=keys, **given)
    if keys:
        rule = "Idempotency-Key must not be sent with a CloudEvent, whose key is its source and id"
        raise InvalidInput("invalid_idempotency_key", rule, field="Idempotency-Key", status=422)
    if is_structured:
        body = await read_body(request, max_bytes, media_type=STRUCTURED_TYPE)
        return cloud_events.read_structured(body, **given)
    body = await read_body(request, max_bytes, media_type=ANY_JSON)
    return cloud_events.read_binary(request.headers.items(), body, **given)


async def post_batch(request: Request) -> Response:
    """Accept a batch in one transaction: 200, per item in order `{id, duplicate}` or `{error: problem}`."""
    services = services_of(request)
    caller = await authorize(request, "events:write")
    items = read_batch(
        await read_body(request, BATCH_MAX_BYTES),
        max_bytes=BATCH_MAX_BYTES,
        item_max_bytes=services.settings.payload_max_bytes,
        tenant_id=caller.tenant_id,
        traceparent=traceparent_of(request),
    )
    accepted = iter(await services.accept_batch([item for item in items if isinstance(item, EventDraft)]))
    in_order = [next(accepted) if isinstance(item, EventDraft) else item for item in items]
    root_path = root_path_of(request)
    return answer_response(answers.BatchAnswer([_item_answer(answer, root_path) for answer in in_order]))


async def post_test_event(request: Request) -> Response:
    """Accept a test event for one subscription: 202 with it."""
    caller, services = await authorize(request, "events:write"), services_of(request)
    subscription_id = subscription_id_of(request)
    max_bytes = services.settings.payload_max_bytes
    wanted = read_test_event(await read_body(request, max_bytes), max_bytes=max_bytes)
    found = await services.events.run(subscription_to_test, subscription_id, tenant_id=caller.tenant_id)
    draft = await with_sample(
        services,
        draft_test_event(
            wanted,
            subscription_id=subscription_id,
            tenant_id=found.tenant_id,
            event_types=found.event_types,
            takes=found.takes,
            traceparent=traceparent_of(request),
        ),
        wanted,
    )
    answer = await services.accept.submit(draft)
    if isinstance(answer, HooksagaError):
        raise answer
    return answer_response(_accepted(answer), 202)


async def with_sample(services: Services, draft: EventDraft, wanted: WantedTestEvent) -> EventDraft:
    """Return the test event with the sample of its type as payload, if no payload was given and there is a sample."""
    if wanted.payload is not UNSET:
        return draft
    sample = await services.events.run(sample_of_type, draft.event_type)
    return draft if sample is None else replace(draft, payload=sample)


def _item_answer(
    answer: AcceptedEvent | HooksagaError, root_path: str
) -> answers.AcceptedEvent | answers.RefusedEvent:
    if isinstance(answer, HooksagaError):
        return answers.RefusedEvent(item_problem(answer, root_path))
    return _accepted(answer)


def _accepted(event: AcceptedEvent) -> answers.AcceptedEvent:
    """Return the response of one posted event; its fields are given here because that is faster than finding them."""
    id_text, created_at = event_id_text(event.webhook_id), utc_text(event.created_at)
    if event.warning is None:
        return answers.AcceptedEvent(id_text, event.event_type, created_at, event.duplicate)
    field, detail = f"payload{event.warning.pointer}", event.warning.rule
    warning = answers.PayloadWarning("payload_mismatch", field, detail)
    return answers.AcceptedEvent(id_text, event.event_type, created_at, event.duplicate, warning)


async def get_event(request: Request) -> Response:
    """Show an event, its sagas, each saga's attempts, and its routing. The payload is equal to the byte."""
    caller = await authorize(request, "admin", "events:write")
    webhook_id = webhook_id_of(str(request.path_params["id"]))
    attempt_limit = services_of(request).settings.max_retry_limit

    async def read(connection: Connection) -> tuple[EventView, Routing]:
        view = await inspect.show_event(connection, webhook_id, tenant_id=caller.tenant_id)
        return view, await explain_event(
            connection, webhook_id, tenant_id=caller.tenant_id, default_attempt_limit=attempt_limit
        )

    view, routing = await services_of(request).admin.run(read)
    return answer_response(_event(view, routing), shown_to=caller)


async def get_routing(request: Request) -> Response:
    """Show a page of the tenant's subscriptions: matched by the event, or why not."""
    caller = await authorize(request, "admin", "events:write")
    webhook_id = webhook_id_of(str(request.path_params["id"]))
    check_list_parameters(request)
    limit, after = query_limit(request), read_place(request.query_params.get("cursor"))
    attempt_limit = services_of(request).settings.max_retry_limit
    routing = await services_of(request).admin.run(
        explain_event,
        webhook_id,
        tenant_id=caller.tenant_id,
        default_attempt_limit=attempt_limit,
        after=after,
        limit=limit,
    )
    return answer_response(event_routing(routing), shown_to=caller)


def webhook_id_of(text: str) -> UUID:
    """Return the id in `evt_…`. Raises NotFound for text that is not an event id."""
    found = _EVENT_ID.fullmatch(text)
    if not found:
        raise NotFound("event_not_found", "an event id must be evt_ and 32 hex digits")
    return UUID(found[1])


def _event(view: EventView, routing: Routing) -> answers.Event:
    """Return one event. Its payload stays text, because serializing it again could change it."""
    return answers.Event.of(
        view,
        id=event_id_text(view.webhook_id),
        sagas=[_saga(view, saga) for saga in view.sagas],
        routing=routing_answer(routing),
    )


def _saga(view: EventView, saga: SagaView) -> answers.Saga:
    attempts = [_attempt(view, saga, attempt) for attempt in saga.attempts]
    return answers.Saga.of(saga, attempts=attempts, **waiting_fields(saga.waiting))


def _attempt(view: EventView, saga: SagaView, attempt: inspect.Attempt) -> Attempt:
    sent = sent_headers(attempt.leased_at, attempt.own_header_names)
    headers = sent and masked_headers(
        sent,
        webhook_id=event_id_text(view.webhook_id),
        event_type=view.event_type,
        attempt_number=attempt.attempt_number,
        cause=started_by(
            requeued_from=saga.requeued_from,
            resent_from=saga.resent_from,
            bulk_operation_id=saga.bulk_operation_id,
        ),
        traceparent=delivery_traceparent(view.webhook_id, view.traceparent, attempt.id, attempt.claim_count),
        formatted=sent_format_headers(
            attempt.sent_format,
            view.cloud_event,
            webhook_id=view.webhook_id,
            event_type=view.event_type,
            created_at=view.created_at,
        ),
        is_test=view.test_subscription_id is not None,
    )
    trigger = trigger_of(
        attempt.attempt_number,
        requeued_from=saga.requeued_from,
        resent_from=saga.resent_from,
        bulk_operation_id=saga.bulk_operation_id,
    )
    return Attempt.of(attempt, trigger=trigger, request_headers=headers)


INGEST_ROUTES = [
    Route("/v1/events", post_event, methods=["POST"]),
    Route("/v1/events/batch", post_batch, methods=["POST"]),
    Route("/v1/subscriptions/{id}/test", post_test_event, methods=["POST"]),
]
ADMIN_ROUTES = [
    Route("/v1/events", find_events.list_events, methods=["GET"]),
    Route("/v1/events/{id}", get_event, methods=["GET"]),
    Route("/v1/events/{id}/routing", get_routing, methods=["GET"]),
]
