"""What an operator asks of the admin function directly: `{"action": …}`, the same use-cases as the routes (spec §9)."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal, assert_never

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from shared.adapters.queues import Outgoing, Queue
from shared.core.errors import HooksagaError, InvalidInput
from shared.core.messages import CancelMessage, Id
from shared.core.models import EventType, RequeueFilter, StrictModel
from shared.runtime.dispatch import tell_orchestrator_of_sagas
from shared.runtime.function import Function, Invocation
from shared.runtime.http_api import MAX_LIMIT, problem_content
from shared.runtime.routes.events import event_json, webhook_id_of
from shared.runtime.routes.operations import dead_letter_content
from shared.stages import inspect, requeue
from shared.stages.requeue import DeadLetterFilter


class ListDeadLetters(StrictModel):
    """Newest first; `before_id` is the last id of the page before."""

    action: Literal["list_dead_letters"]
    tenant_id: str | None = None
    subscription_id: Id | None = None
    event_type: EventType | None = None
    error_code: str | None = None
    failed_after: AwareDatetime | None = Field(default=None, strict=False)
    failed_before: AwareDatetime | None = Field(default=None, strict=False)
    before_id: Id | None = None
    limit: int = Field(default=50, ge=1, le=MAX_LIMIT)


class ShowDeadLetter(StrictModel):
    action: Literal["show_dead_letter"]
    id: Id


class Requeue(StrictModel):
    action: Literal["requeue"]
    id: Id


class RequeueMatching(RequeueFilter):
    action: Literal["requeue_matching"]


class CancelSaga(StrictModel):
    """The orchestrator does it; the answer says that it was asked."""

    action: Literal["cancel_saga"]
    saga_id: Id


class ShowEvent(StrictModel):
    action: Literal["show_event"]
    id: str


class ShowStats(StrictModel):
    action: Literal["stats"]


Action = ListDeadLetters | ShowDeadLetter | Requeue | RequeueMatching | CancelSaga | ShowEvent | ShowStats
_ACTIONS: TypeAdapter[Action] = TypeAdapter(Annotated[Action, Field(discriminator="action")])


async def run_action(function: Function, invocation: Invocation) -> dict[str, Any]:
    """The action's answer, or `{"error": problem}` for what the caller did wrong."""
    try:
        return await _run(function, _read(invocation.event))
    except HooksagaError as error:
        return {"error": problem_content(error)}


def _read(event: dict[str, Any]) -> Action:
    try:
        return _ACTIONS.validate_json(json.dumps(event))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or "action"
        raise InvalidInput("invalid_field", f"{field}: {first['msg']}", field=field, status=422) from None


async def _run(function: Function, action: Action) -> dict[str, Any]:
    match action:
        case ListDeadLetters():
            return await _list(function, action)
        case ShowDeadLetter():
            row = await function.session.run(
                lambda connection: inspect.show_dead_letter(connection, action.id, tenant_id=None)
            )
            return {
                **dead_letter_content(row),
                "payload_snapshot": json.loads(row.payload_snapshot or "null"),
            }
        case Requeue():
            return await _requeue(function, action.id)
        case RequeueMatching():
            return await _requeue_matching(function, action)
        case CancelSaga():
            await function.queues.send(
                Queue.ORCHESTRATION, [Outgoing(CancelMessage(cancel_saga_id=action.saga_id))]
            )
            return {"saga_id": action.saga_id, "asked": True}
        case ShowEvent():
            webhook_id = webhook_id_of(action.id)
            view = await function.session.run(
                lambda connection: inspect.show_event(connection, webhook_id, tenant_id=None)
            )
            return json.loads(event_json(view))
        case ShowStats():
            return asdict(await function.session.run(inspect.read_stats))
        case _:
            assert_never(action)


async def _list(function: Function, action: ListDeadLetters) -> dict[str, Any]:
    wanted = DeadLetterFilter(**action.model_dump(exclude={"action", "before_id", "limit"}))
    rows = await function.session.run(
        lambda connection: inspect.list_dead_letters(
            connection, wanted, before_id=action.before_id, limit=action.limit
        )
    )
    following = rows[-1].id if len(rows) == action.limit else None
    return {"items": [dead_letter_content(row) for row in rows], "next": following}


async def _requeue(function: Function, dead_letter_id: int) -> dict[str, Any]:
    answer = await function.session.run(lambda connection: requeue.requeue_one(connection, dead_letter_id))
    if answer.created and answer.saga_id is not None:
        await tell_orchestrator_of_sagas(function.queues, [answer.saga_id])
    return {"dead_letter_id": answer.dead_letter_id, "saga_id": answer.saga_id, "created": answer.created}


async def _requeue_matching(function: Function, action: RequeueMatching) -> dict[str, Any]:
    wanted = DeadLetterFilter(**action.model_dump(exclude={"action", "limit", "dry_run"}))
    done = await function.session.run(
        lambda connection: requeue.requeue_matching(
            connection, wanted, limit=action.limit, dry_run=action.dry_run
        )
    )
    saga_ids = [one.saga_id for one in done.requeued if one.saga_id is not None]
    await tell_orchestrator_of_sagas(function.queues, saga_ids)
    return {**asdict(done), "requeued": len(saga_ids)}
