"""What an operator asks of the admin function directly: `{"action": …}`, the same use-cases as the routes."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, TypeAdapter, ValidationError

from hooksaga.api.answers.dead_letters import CanceledSaga, RequeuedMatches
from hooksaga.api.answers.service import Stats
from hooksaga.api.problem_answers import item_problem
from hooksaga.api.query_parameters import MAX_LIMIT
from hooksaga.api.routes.operations import dead_letter, dead_letter_with_payload
from hooksaga.aws.attempt_actions import AttemptAction, run_on_attempts
from hooksaga.aws.bulk_actions import BulkAction, run_bulk_action
from hooksaga.aws.dispatch import ask_to_cancel, tell_orchestrator_of_sagas
from hooksaga.aws.event_actions import EventAction, Explain, ShowEvent, run_on_event
from hooksaga.aws.function import Function, Invocation
from hooksaga.aws.operator_actions import OperatorAction, run_operator_action
from hooksaga.core.errors import Conflict, HooksagaError, InvalidInput, RefusedRow
from hooksaga.core.messages import Id
from hooksaga.core.models import EventType, Moment, StrictModel, TenantId, rfc3339
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.requeue_models import RequeueFilter
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import api_keys, inspect, requeue
from hooksaga.operations.api_keys import ApiKeyView
from hooksaga.operations.requeue import DeadLetterFilter
from hooksaga.operations.telemetry import note_requeued
from hooksaga.stages.telemetry import note_refused


class ListDeadLetters(StrictModel):
    """Newest first; `before_id` is the last id of the page before."""

    action: Literal["list_dead_letters"]
    tenant_id: str | None = None
    subscription_id: Id | None = None
    event_type: EventType | None = None
    error_code: str | None = None
    failed_after: Moment | None = None
    failed_before: Moment | None = None
    before_id: Id | None = None
    limit: int = Field(default=50, ge=1, le=MAX_LIMIT)


class ShowDeadLetter(StrictModel):
    """`payload_snapshot` of the answer is JSON text, to the byte: an object would be written anew on its way."""

    action: Literal["show_dead_letter"]
    id: Id


class Requeue(StrictModel):
    action: Literal["requeue"]
    id: Id


class RequeueMatching(RequeueFilter):
    action: Literal["requeue_matching"]


class CancelSaga(StrictModel):
    """The orchestrator is asked to; the answer is the saga's state at that moment."""

    action: Literal["cancel_saga"]
    saga_id: Id


class ShowStats(StrictModel):
    action: Literal["stats"]


class CreateKey(StrictModel):
    """The answer shows the key, this one time: only its hash is kept."""

    action: Literal["create_key"]
    name: str = Field(pattern=r"^[ -~]{1,100}$")
    scopes: list[Literal["events:write", "subscriptions:write", "admin"]] = Field(
        default=["events:write", "subscriptions:write", "admin"], min_length=1
    )
    tenant_id: TenantId | None = None


class ListKeys(StrictModel):
    action: Literal["list_keys"]


class RevokeKey(StrictModel):
    action: Literal["revoke_key"]
    id: Id


KeyAction = CreateKey | ListKeys | RevokeKey
RowAction = (
    ListDeadLetters
    | ShowDeadLetter
    | Requeue
    | RequeueMatching
    | CancelSaga
    | EventAction
    | ShowStats
    | KeyAction
)
Action = RowAction | AttemptAction | BulkAction | OperatorAction
_ACTIONS: TypeAdapter[Action] = TypeAdapter(Annotated[Action, Field(discriminator="action")])


async def run_action(function: Function, invocation: Invocation) -> dict[str, Any]:
    """The action's answer, or `{"error": problem}` for what the caller did wrong."""
    try:
        action = _read(invocation.event)
        if isinstance(action, AttemptAction):
            return await run_on_attempts(function, action)
        if isinstance(action, BulkAction):
            return await run_bulk_action(function, action)
        if isinstance(action, OperatorAction):
            return await run_operator_action(function, invocation, action)
        return await _run(function, action)
    except HooksagaError as error:
        return {"error": item_problem(error).content()}


def _read(event: dict[str, Any]) -> Action:
    try:
        return _ACTIONS.validate_json(json.dumps(event))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or "action"
        raise InvalidInput("invalid_field", f"{field}: {first['msg']}", field=field, status=422) from None


async def _run(function: Function, action: RowAction) -> dict[str, Any]:
    match action:
        case ListDeadLetters():
            return await _list(function, action)
        case ShowDeadLetter():
            return await _show(function, action.id)
        case Requeue():
            return await _requeue(function, action.id)
        case RequeueMatching():
            return await _requeue_matching(function, action)
        case CancelSaga():
            return await _cancel(function, action.saga_id)
        case ShowEvent() | Explain():
            return await run_on_event(function, action)
        case ShowStats():
            return Stats.of(await function.session.run(inspect.read_stats)).content()
        case _:
            return await _run_on_keys(function, action)


async def _run_on_keys(function: Function, action: KeyAction) -> dict[str, Any]:
    match action:
        case CreateKey():
            return await _create_key(function, action)
        case ListKeys():
            keys = await function.session.run(api_keys.list_api_keys)
            return {"items": [_key_content(key) for key in keys]}
        case RevokeKey():
            await function.session.run(lambda connection: api_keys.revoke_api_key(connection, action.id))
            return {"id": action.id, "revoked": True}
        case _:
            assert_never(action)


async def _show(function: Function, dead_letter_id: int) -> dict[str, Any]:
    row = await function.session.run(
        lambda connection: inspect.show_dead_letter(connection, dead_letter_id, tenant_id=None)
    )
    return dead_letter_with_payload(row).content()


async def _list(function: Function, action: ListDeadLetters) -> dict[str, Any]:
    wanted = DeadLetterFilter(**action.model_dump(exclude={"action", "before_id", "limit"}))
    rows = await function.session.run(
        lambda connection: inspect.list_dead_letters(
            connection, wanted, before_id=action.before_id, limit=action.limit
        )
    )
    following = rows[-1].id if len(rows) == action.limit else None
    return {"items": [dead_letter(row).content() for row in rows], "next": following}


async def _cancel(function: Function, saga_id: int) -> dict[str, Any]:
    saga = await function.session.run(
        lambda connection: inspect.show_saga_state(connection, saga_id, tenant_id=None)
    )
    if saga.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY):
        await ask_to_cancel(function.queues, saga.traced)
    elif saga.final_error_code != ErrorCode.CANCELED:
        raise Conflict(
            "saga_not_waiting", f"saga {saga_id} is {saga.status}: only a waiting saga is canceled"
        )
    return CanceledSaga(saga_id, saga.status).content()


async def _requeue(function: Function, dead_letter_id: int) -> dict[str, Any]:
    answer = await function.session.run(lambda connection: requeue.requeue_one(connection, dead_letter_id))
    if answer.created and answer.saga_id is not None:
        note_requeued([answer])
        await tell_orchestrator_of_sagas(function.queues, answer.traced_sagas)
    return {"dead_letter_id": answer.dead_letter_id, "saga_id": answer.saga_id, "created": answer.created}


async def _requeue_matching(function: Function, action: RequeueMatching) -> dict[str, Any]:
    wanted = DeadLetterFilter(**action.model_dump(exclude={"action", "limit", "dry_run"}))
    refused: list[RefusedRow] = []
    done = await function.session.run(
        lambda connection: requeue.requeue_matching(
            connection, wanted, limit=action.limit, dry_run=action.dry_run, on_refusal=refused.append
        )
    )
    note_requeued(done.requeued)
    note_refused(refused)
    sagas = [saga for one in done.requeued for saga in one.traced_sagas]
    await tell_orchestrator_of_sagas(function.queues, sagas)
    return RequeuedMatches.of(done, requeued=len(sagas)).content()


async def _create_key(function: Function, action: CreateKey) -> dict[str, Any]:
    key = api_keys.generate_api_key()
    chosen = action.model_dump(exclude={"action"})
    key_id = await function.session.run(lambda connection: api_keys.create_api_key(connection, key, **chosen))
    return {"id": key_id, **chosen, "key": key}


def _key_content(key: ApiKeyView) -> dict[str, Any]:
    times = {"created_at": rfc3339(key.created_at), "revoked_at": rfc3339(key.revoked_at)}
    return {**asdict(key), **times}
