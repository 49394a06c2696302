"""What an operator asks of the admin function about attempts, directly: the use-cases of the attempt log's routes."""

from dataclasses import fields
from typing import Any, Literal, assert_never

from pydantic import Field

from hooksaga.api.query_parameters import MAX_LIMIT
from hooksaga.api.routes import attempts as routes
from hooksaga.aws.function import Function
from hooksaga.core.attempts import Outcome, StatusClass
from hooksaga.core.messages import Id
from hooksaga.core.models import EventType, Moment, StrictModel
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter
from hooksaga.operations.subscription_stats import subscription_stats

_FILTERS = {field.name for field in fields(AttemptFilter)}


class ListAttempts(StrictModel):
    """Finished attempts, newest first; `cursor` is the `next` of the page before."""

    action: Literal["list_attempts"]
    tenant_id: str | None = None
    subscription_id: Id | None = None
    event_type: EventType | None = None
    error_code: str | None = None
    status_class: StatusClass | None = None
    outcome: Outcome | None = None
    finished_after: Moment | None = None
    finished_before: Moment | None = None
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=MAX_LIMIT)


class ShowAttempt(StrictModel):
    action: Literal["show_attempt"]
    id: Id


class ShowSubscriptionStats(StrictModel):
    action: Literal["subscription_stats"]
    id: Id
    window: routes.Window = routes.Window.DAY


AttemptAction = ListAttempts | ShowAttempt | ShowSubscriptionStats


async def run_on_attempts(function: Function, action: AttemptAction) -> dict[str, Any]:
    """The action's answer. Raises HooksagaError for what the caller did wrong."""
    match action:
        case ListAttempts():
            return await _list(function, action)
        case ShowAttempt():
            row = await function.session.run(
                lambda connection: attempt_log.show_attempt(connection, action.id, tenant_id=None)
            )
            return routes.whole_attempt(row).content()
        case ShowSubscriptionStats():
            hours = routes.WINDOW_HOURS[action.window]
            stats = await function.session.run(
                lambda connection: subscription_stats(
                    connection, action.id, window_hours=hours, tenant_id=None
                )
            )
            return routes.stats_answer(stats).content()
        case _:
            assert_never(action)


async def _list(function: Function, action: ListAttempts) -> dict[str, Any]:
    wanted = AttemptFilter(**action.model_dump(include=_FILTERS))
    before = routes.read_position(action.cursor)
    page = await function.session.run(
        lambda connection: attempt_log.list_attempts(connection, wanted, before=before, limit=action.limit)
    )
    items = [routes.logged_attempt(item).content() for item in page.items]
    return {"items": items, "next": routes.position_text(page.following)}
