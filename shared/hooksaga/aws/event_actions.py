"""The actions of the admin function that ask about one event."""

from typing import Any, Literal, assert_never
from uuid import UUID

from pydantic import Field

from hooksaga.api.query_parameters import MAX_LIMIT
from hooksaga.api.routes.events import event_answer, webhook_id_of
from hooksaga.api.routing_answer import event_routing, read_place
from hooksaga.aws.function import Function
from hooksaga.core.models import StrictModel
from hooksaga.operations import inspect
from hooksaga.operations.explain import MAX_DECISIONS, Place, Routing, explain_event


class ShowEvent(StrictModel):
    """`payload` of the answer is JSON text, to the byte: an object would be written anew on its way."""

    action: Literal["show_event"]
    id: str


class Explain(StrictModel):
    """Who the event was routed to, and why not to the others; `cursor` is `next` of the page before."""

    action: Literal["explain"]
    id: str
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=MAX_LIMIT)


EventAction = ShowEvent | Explain


async def run_on_event(function: Function, action: EventAction) -> dict[str, Any]:
    """The action's answer. Raises NotFound for an unknown event, and InvalidInput for a bad cursor."""
    webhook_id = webhook_id_of(action.id)
    match action:
        case ShowEvent():
            view = await function.session.run(
                lambda connection: inspect.show_event(connection, webhook_id, tenant_id=None)
            )
            return event_answer(view, await _routing(function, webhook_id)).content()
        case Explain():
            after = read_place(action.cursor)
            routing = await _routing(function, webhook_id, after=after, limit=action.limit)
            return event_routing(routing).content()
        case _:
            assert_never(action)


async def _routing(
    function: Function, webhook_id: UUID, *, after: Place | None = None, limit: int = MAX_DECISIONS
) -> Routing:
    attempt_limit = function.settings.max_retry_limit
    return await function.session.run(
        lambda connection: explain_event(
            connection,
            webhook_id,
            tenant_id=None,
            default_attempt_limit=attempt_limit,
            after=after,
            limit=limit,
        )
    )
