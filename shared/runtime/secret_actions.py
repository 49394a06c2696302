"""What an operator asks of the subscriptions function directly: it alone may both read and change sealed secrets."""

import json
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

from pydantic import Field, ValidationError

from shared.core.errors import HooksagaError, InvalidInput
from shared.core.models import StrictModel
from shared.runtime.function import Invocation
from shared.runtime.http_api import problem_content
from shared.runtime.sending_function import SendingFunction
from shared.stages.reseal_secrets import Resealed, reseal_batch, together

SECONDS_FOR_ONE_BATCH = 8.0


class ResealSecrets(StrictModel):
    """Seals every stored secret anew under the first key. When the answer has a `next`, more is left."""

    action: Literal["reseal_secrets"]
    after: int = Field(default=0, ge=0, lt=2**63)
    dry_run: bool = False


async def run_secret_action(function: SendingFunction, invocation: Invocation) -> dict[str, Any]:
    """The action's answer, or `{"error": problem}` for what the caller did wrong."""
    try:
        return _content(await _reseal(function, invocation, _read(invocation.event)))
    except HooksagaError as error:
        return {"error": problem_content(error)}


def _read(event: dict[str, Any]) -> ResealSecrets:
    try:
        return ResealSecrets.model_validate_json(json.dumps(event))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "action"
        raise InvalidInput("invalid_field", f"{field}: {first['msg']}", field=field, status=422) from None


async def _reseal(function: SendingFunction, invocation: Invocation, action: ResealSecrets) -> Resealed:
    run = partial(reseal_batch, box=function.box, dry_run=action.dry_run)
    done = await function.session.run(partial(run, after_id=action.after))
    while done.last_id is not None and invocation.seconds_left() > SECONDS_FOR_ONE_BATCH:
        done = together(done, await function.session.run(partial(run, after_id=done.last_id)))
    return done


def _content(done: Resealed) -> dict[str, Any]:
    fields = asdict(done)
    return {**fields, "unreadable": list(done.unreadable), "next": fields.pop("last_id")}
