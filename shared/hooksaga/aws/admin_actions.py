"""Direct invocations of the admin function by operators: an API request, or an action without a route.

The actions `{"action": "requeue"}` and `{"action": "stats"}` also have routes, and are kept because they are short.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, TypeAdapter

from hooksaga.api.answers.service import Stats
from hooksaga.api.routes.operations import requeue_for
from hooksaga.aws.actions import read_action, result_or_problem
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.direct_requests import REQUESTS, answer_directly
from hooksaga.aws.function import Function, Invocation
from hooksaga.aws.operator_actions import OperatorAction, run_operator_action
from hooksaga.core.messages import Id
from hooksaga.core.models import StrictModel, TenantId, rfc3339
from hooksaga.core.scopes import DEFAULT_SCOPES, Scope
from hooksaga.operations import api_keys, inspect
from hooksaga.operations.api_keys import ApiKeyView


class Requeue(StrictModel):
    action: Literal["requeue"]
    id: Id


class ShowStats(StrictModel):
    action: Literal["stats"]


class CreateKey(StrictModel):
    """Create an API key. Only this response shows the key; its hash alone is stored."""

    action: Literal["create_key"]
    name: str = Field(pattern=r"^[ -~]{1,100}$")
    scopes: list[Scope] = Field(default=list(DEFAULT_SCOPES), min_length=1)
    tenant_id: TenantId | None = None


class ListKeys(StrictModel):
    action: Literal["list_keys"]


class RevokeKey(StrictModel):
    action: Literal["revoke_key"]
    id: Id


KeyAction = CreateKey | ListKeys | RevokeKey
Action = Requeue | ShowStats | KeyAction | OperatorAction
_ACTIONS: TypeAdapter[Action] = TypeAdapter(Annotated[Action, Field(discriminator="action")])


async def run_action(function: ApiFunction, invocation: Invocation) -> dict[str, Any]:
    """Return the action's result, or `{status, body}` of a request. Returns `{"error": problem}` for an event that is
    neither, and for an error of an action's caller."""
    return await result_or_problem(_run(function, invocation))


async def _run(function: ApiFunction, invocation: Invocation) -> dict[str, Any]:
    if "method" in invocation.event or "path" in invocation.event:
        return await answer_directly(function, read_action(REQUESTS, invocation.event))
    match action := read_action(_ACTIONS, invocation.event):
        case Requeue():
            function.services.check_before_next_use()
            done = await requeue_for(function.services, action.id)
            return {"dead_letter_id": done.dead_letter_id, "saga_id": done.saga_id, "created": done.created}
        case ShowStats():
            return Stats.of(await function.session.run(inspect.read_stats)).content()
        case CreateKey() | ListKeys() | RevokeKey():
            return await _run_on_keys(function, action)
        case _:
            return await run_operator_action(function, invocation, action)


async def _run_on_keys(function: Function, action: KeyAction) -> dict[str, Any]:
    match action:
        case CreateKey():
            return await _create_key(function, action)
        case ListKeys():
            keys = await function.session.run(api_keys.list_api_keys)
            return {"items": [_key_content(key) for key in keys]}
        case RevokeKey():
            await function.session.run(api_keys.revoke_api_key, action.id)
            return {"id": action.id, "revoked": True}
        case _:
            assert_never(action)


async def _create_key(function: Function, action: CreateKey) -> dict[str, Any]:
    key = api_keys.generate_api_key()
    chosen = action.model_dump(exclude={"action"})
    key_id = await function.session.run(api_keys.create_api_key, key, **chosen)
    return {"id": key_id, **chosen, "key": key}


def _key_content(key: ApiKeyView) -> dict[str, Any]:
    times = {"created_at": rfc3339(key.created_at), "revoked_at": rfc3339(key.revoked_at)}
    return {**asdict(key), **times}
