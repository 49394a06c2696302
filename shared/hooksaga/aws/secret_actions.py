"""Direct actions of the subscriptions function: it alone may both read and change sealed values."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from hooksaga.aws.actions import read_action, result_or_problem
from hooksaga.aws.function import SECONDS_FOR_ONE_BATCH, Invocation
from hooksaga.aws.sending_function import SendingFunction
from hooksaga.core.models import StrictModel
from hooksaga.operations.reseal_headers import reseal_headers_batch
from hooksaga.operations.reseal_secrets import reseal_batch, together


class _Reseal(StrictModel):
    """A reseal action. When the response has a `next`, more is left: call again with it in `after`."""

    after: int = Field(default=0, ge=0, lt=2**63)
    dry_run: bool = False


class ResealSecrets(_Reseal):
    """Reseal every stored signing secret under the first key."""

    action: Literal["reseal_secrets"]


class ResealHeaders(_Reseal):
    """Reseal every value of subscriptions' headers under the first key, and seal those in clear."""

    action: Literal["reseal_headers"]


Action = ResealSecrets | ResealHeaders
_ACTIONS: TypeAdapter[Action] = TypeAdapter(Annotated[Action, Field(discriminator="action")])


async def run_secret_action(function: SendingFunction, invocation: Invocation) -> dict[str, Any]:
    """Return the action's result, or `{"error": problem}` for a caller's error."""
    return await result_or_problem(_run(function, invocation))


async def _run(function: SendingFunction, invocation: Invocation) -> dict[str, Any]:
    action = read_action(_ACTIONS, invocation.event)
    batch = reseal_batch if isinstance(action, ResealSecrets) else reseal_headers_batch
    run = partial(batch, box=function.box, dry_run=action.dry_run)
    done = await function.session.run(run, after_id=action.after)
    while done.last_id is not None and invocation.seconds_left() > SECONDS_FOR_ONE_BATCH:
        done = together(done, await function.session.run(run, after_id=done.last_id))
    content = {
        "checked": done.checked,
        "changed": done.changed,
        "unreadable": list(done.unreadable),
        "locked": list(done.locked),
        "next": done.last_id,
    }
    return content if isinstance(action, ResealSecrets) else {**content, "in_clear": list(done.in_clear)}
