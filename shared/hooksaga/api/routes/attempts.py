"""Routes of the attempt log: list, show, follow, and statistics of one subscription."""

from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import attempts as answers
from hooksaga.api.cursors import ATTEMPTS_CURSOR, FOLLOW_CURSOR, moment_at, read_cursor, write_cursor
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import MAX_ID, Caller, authorize, path_id, services_of, subscription_id_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import ReadPage, check_list_parameters
from hooksaga.api.query_parameters import (
    check_parameters,
    query_choice,
    query_integer,
    query_limit,
    query_moment,
    query_tenant,
    query_text,
)
from hooksaga.api.services import Services
from hooksaga.core.attempts import Outcome, StatusClass, trigger_of
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter, LoggedAttempt, Position, WholeAttempt
from hooksaga.operations.follow_attempts import FollowCursor, follow_attempts
from hooksaga.operations.subscription_stats import SubscriptionStats, subscription_stats

FILTERS = ("tenant_id", "subscription_id", "event_type", "status_class", "error_code", "outcome")
_TIMES = ("finished_after", "finished_before")


class Window(StrEnum):
    """How far back the stats of a subscription look."""

    HOUR = "1h"
    DAY = "24h"


WINDOW_HOURS = {Window.HOUR: 1, Window.DAY: 24}


async def list_attempts(request: Request) -> Response:
    """List finished attempts, newest first, by any of the filters. `next` may follow a short page."""
    caller = await authorize(request, "admin")
    check_list_parameters(request, FORMAT, *FILTERS, *_TIMES)
    read = attempt_pages(services_of(request), _filter(request, caller))
    return await list_response(request, caller, read, item=answers.LoggedAttempt, name="attempts")


def attempt_pages(services: Services, wanted: AttemptFilter) -> ReadPage:
    """Return the reader of the pages of the attempt log."""

    async def read(cursor: str | None, limit: int) -> answers.LoggedAttemptList:
        before = read_position(cursor)
        page = await services.admin.run(attempt_log.list_attempts, wanted, before=before, limit=limit)
        items = [_logged(row) for row in page.items]
        return answers.LoggedAttemptList(items, position_text(page.following))

    return read


async def follow(request: Request) -> Response:
    """Return `{items, next, more}`: attempts finished since the cursor, oldest first, and some earlier ones again."""
    caller = await authorize(request, "admin")
    check_list_parameters(request, *FILTERS)
    wanted, limit = _filter(request, caller), query_limit(request)
    cursor = _follow_cursor(request.query_params.get("cursor"))
    done = await services_of(request).admin.run(follow_attempts, wanted, cursor, limit=limit)
    items = [_logged(row) for row in done.items]
    answer = answers.FollowedAttempts(items, _follow_text(done.cursor), done.more)
    return answer_response(answer, shown_to=caller)


async def show(request: Request) -> Response:
    """Show one attempt in any state, with the response body and the request's headers, secrets masked."""
    caller = await authorize(request, "admin")
    attempt_id = path_id(request, NotFound("attempt_not_found", "there is no such attempt"))
    row = await services_of(request).admin.run(
        attempt_log.show_attempt, attempt_id, tenant_id=caller.tenant_id
    )
    return answer_response(_whole(row), shown_to=caller)


async def show_subscription_stats(request: Request) -> Response:
    """Show the statistics of a subscription over the last hour or day."""
    caller = await authorize(request, "subscriptions:write", "admin")
    check_parameters(request, "window")
    subscription_id = subscription_id_of(request)
    hours = WINDOW_HOURS[query_choice(request, "window", Window) or Window.DAY]
    stats = await services_of(request).admin.run(
        subscription_stats, subscription_id, window_hours=hours, tenant_id=caller.tenant_id
    )
    return answer_response(_stats(stats), shown_to=caller)


def _filter(request: Request, caller: Caller) -> AttemptFilter:
    return AttemptFilter(
        tenant_id=query_tenant(request, caller.tenant_id),
        subscription_id=query_integer(request, "subscription_id", 1, MAX_ID),
        event_type=query_text(request, "event_type"),
        error_code=checked_code_filter(caller, query_text(request, "error_code")),
        status_class=query_choice(request, "status_class", StatusClass),
        outcome=query_choice(request, "outcome", Outcome),
        finished_after=query_moment(request, "finished_after"),
        finished_before=query_moment(request, "finished_before"),
    )


def read_position(cursor: str | None) -> Position | None:
    """Return the position of a cursor by position_text. Raises InvalidInput `invalid_cursor`."""
    if cursor is None:
        return None
    finished_at, attempt_id = read_cursor(cursor, ATTEMPTS_CURSOR)
    return Position(moment_at(finished_at), attempt_id)


def position_text(position: Position | None) -> str | None:
    return None if position is None else write_cursor(position.finished_at, position.id)


def _follow_cursor(text: str | None) -> FollowCursor | None:
    if text is None:
        return None
    at, attempt_id, floor, mark_at, transaction, in_pass = read_cursor(text, FOLLOW_CURSOR)
    position = Position(moment_at(at), attempt_id)
    return FollowCursor(position, moment_at(floor), moment_at(mark_at), transaction, bool(in_pass))


def _follow_text(cursor: FollowCursor) -> str:
    at = cursor.position
    mark = (cursor.mark_at, cursor.mark_transaction)
    return write_cursor(at.finished_at, at.id, cursor.floor, *mark, int(cursor.in_pass))


def _logged(row: LoggedAttempt) -> answers.LoggedAttempt:
    return answers.LoggedAttempt.of(row, event_id=event_id_text(row.webhook_id), trigger=_trigger(row))


def _whole(row: WholeAttempt) -> answers.WholeAttempt:
    event_id = event_id_text(row.webhook_id)
    return answers.WholeAttempt.of(
        row,
        event_id=event_id,
        trigger=_trigger(row),
        request_headers=row.request_headers,
        response_headers=row.response_headers,
    )


def _trigger(row: LoggedAttempt) -> str:
    return trigger_of(
        row.attempt_number,
        requeued_from=row.requeued_from,
        resent_from=row.resent_from,
        bulk_operation_id=row.bulk_operation_id,
    )


def _stats(stats: SubscriptionStats) -> answers.SubscriptionStats:
    return answers.SubscriptionStats.of(
        stats,
        last_error=None if stats.last_error is None else answers.LastError.of(stats.last_error),
        backlog=answers.Backlog.of(stats.backlog),
        latency_ms=None if stats.latency_ms is None else answers.Latency.of(stats.latency_ms),
    )


ROUTES = [
    Route("/v1/attempts", list_attempts, methods=["GET"]),
    Route("/v1/attempts/follow", follow, methods=["GET"]),
    Route("/v1/attempts/{id}", show, methods=["GET"]),
    Route("/v1/subscriptions/{id}/stats", show_subscription_stats, methods=["GET"]),
]
