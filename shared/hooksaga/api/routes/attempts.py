"""The attempt log: listed, shown, followed, and summed up for one subscription."""

from dataclasses import asdict
from enum import StrEnum
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.cursors import ATTEMPTS_CURSOR, FOLLOW_CURSOR, moment_at, read_cursor, write_cursor
from hooksaga.api.error_code_views import checked_code_filter, shown_content
from hooksaga.api.http_api import (
    DEFAULT_LIMIT,
    MAX_ID,
    MAX_LIMIT,
    Caller,
    authorize,
    check_parameters,
    json_response,
    path_id,
    query_integer,
    query_moment,
    query_text,
    services_of,
)
from hooksaga.core.attempts import Outcome, StatusClass, masked_headers, trigger_of
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.models import rfc3339
from hooksaga.core.trace import delivery_traceparent
from hooksaga.operations import attempt_log
from hooksaga.operations.attempt_log import AttemptFilter, LoggedAttempt, Position, WholeAttempt
from hooksaga.operations.follow_attempts import FollowCursor, follow_attempts
from hooksaga.operations.subscription_stats import SubscriptionStats, subscription_stats

_FILTERS = ("subscription_id", "event_type", "status_class", "error_code", "outcome")
_TIMES = ("finished_after", "finished_before")


class Window(StrEnum):
    """How far back the stats of a subscription look."""

    HOUR = "1h"
    DAY = "24h"


WINDOW_HOURS = {Window.HOUR: 1, Window.DAY: 24}


async def list_attempts(request: Request) -> Response:
    """Finished attempts, newest first, by any of the filters. `next` may follow a short page."""
    caller = await _operator(request)
    check_parameters(request, "limit", "cursor", *_FILTERS, *_TIMES)
    wanted = _filter(request, caller)
    limit = query_integer(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT
    before = read_position(request.query_params.get("cursor"))
    page = await services_of(request).admin.run(
        lambda connection: attempt_log.list_attempts(connection, wanted, before=before, limit=limit)
    )
    items = [shown_content(caller, attempt_content(item)) for item in page.items]
    return json_response({"items": items, "next": position_text(page.following)})


async def follow(request: Request) -> Response:
    """`{items, next, more}`: what has finished since the cursor, oldest first, and some of before again."""
    caller = await _operator(request)
    check_parameters(request, "limit", "cursor", *_FILTERS)
    wanted = _filter(request, caller)
    limit = query_integer(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT
    cursor = _follow_cursor(request.query_params.get("cursor"))
    done = await services_of(request).admin.run(
        lambda connection: follow_attempts(connection, wanted, cursor, limit=limit)
    )
    items = [shown_content(caller, attempt_content(item)) for item in done.items]
    return json_response({"items": items, "next": _follow_text(done.cursor), "more": done.more})


async def show(request: Request) -> Response:
    """One attempt in any state, with the answer's body and the request's headers, secrets masked."""
    caller = await _operator(request)
    attempt_id = path_id(request, NotFound("attempt_not_found", "there is no such attempt"))
    row = await services_of(request).admin.run(
        lambda connection: attempt_log.show_attempt(connection, attempt_id, tenant_id=caller.tenant_id)
    )
    return json_response(shown_content(caller, whole_attempt_content(row)))


async def show_subscription_stats(request: Request) -> Response:
    """How a subscription is doing, over the last hour or day."""
    caller = await authorize(request, "subscriptions:write", "admin")
    check_parameters(request, "window")
    subscription_id = path_id(request, NotFound("subscription_not_found", "there is no such subscription"))
    hours = WINDOW_HOURS[_choice(request, "window", Window) or Window.DAY]
    stats = await services_of(request).admin.run(
        lambda connection: subscription_stats(
            connection, subscription_id, window_hours=hours, tenant_id=caller.tenant_id
        )
    )
    return json_response(shown_content(caller, stats_content(stats)))


async def _operator(request: Request) -> Caller:
    return await authorize(request, "admin")


def _filter(request: Request, caller: Caller) -> AttemptFilter:
    return AttemptFilter(
        tenant_id=caller.tenant_id,
        subscription_id=query_integer(request, "subscription_id", 1, MAX_ID),
        event_type=query_text(request, "event_type"),
        error_code=checked_code_filter(caller, query_text(request, "error_code")),
        status_class=_choice(request, "status_class", StatusClass),
        outcome=_choice(request, "outcome", Outcome),
        finished_after=query_moment(request, "finished_after"),
        finished_before=query_moment(request, "finished_before"),
    )


Choice = TypeVar("Choice", bound=StrEnum)


def _choice(request: Request, name: str, choices: type[Choice]) -> Choice | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return choices(text)
    except ValueError:
        rule = f"{name} is one of: {', '.join(choices)}"
        raise InvalidInput("invalid_parameter", rule, field=name, status=422) from None


def read_position(cursor: str | None) -> Position | None:
    """The position behind position_text. Raises InvalidInput `invalid_cursor`."""
    if cursor is None:
        return None
    finished_at, attempt_id = read_cursor(cursor, ATTEMPTS_CURSOR)
    return Position(moment_at(finished_at), attempt_id)


def position_text(position: Position | None) -> str | None:
    """The cursor of a page of the log."""
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


def attempt_content(attempt: LoggedAttempt) -> dict[str, Any]:
    """One attempt as lists show it."""
    return {
        "id": attempt.id,
        "event_id": event_id_text(attempt.webhook_id),
        "event_type": attempt.event_type,
        "tenant_id": attempt.tenant_id,
        "subscription_id": attempt.subscription_id,
        "saga_id": attempt.saga_id,
        "status": attempt.status,
        "attempt_number": attempt.attempt_number,
        "max_attempts": attempt.max_attempts,
        "trigger": trigger_of(
            attempt.attempt_number,
            requeued_from=attempt.requeued_from,
            bulk_operation_id=attempt.bulk_operation_id,
        ),
        "response_status": attempt.response_status,
        "error_code": attempt.error_code,
        "duration_ms": attempt.duration_ms,
        "attempt_at": rfc3339(attempt.attempt_at),
        "leased_at": rfc3339(attempt.leased_at),
        "finished_at": rfc3339(attempt.finished_at),
        "worker_id": attempt.worker_id,
        "claim_count": attempt.claim_count,
        "resolved_ip": attempt.resolved_ip,
        "reconnected": attempt.reconnected,
    }


def whole_attempt_content(attempt: WholeAttempt) -> dict[str, Any]:
    """One attempt as it is shown alone."""
    headers = attempt.sent and masked_headers(
        attempt.sent,
        webhook_id=event_id_text(attempt.webhook_id),
        event_type=attempt.event_type,
        attempt_number=attempt.attempt_number,
        traceparent=delivery_traceparent(
            attempt.webhook_id, attempt.traceparent, attempt.id, attempt.claim_count
        ),
    )
    return {
        **attempt_content(attempt),
        "requeued_from": attempt.requeued_from,
        "bulk_operation_id": attempt.bulk_operation_id,
        "retry_after_seconds": attempt.retry_after_seconds,
        "request_headers": headers,
        "response_body": attempt.response_body,
        "response_truncated": attempt.response_truncated,
    }


def stats_content(stats: SubscriptionStats) -> dict[str, Any]:
    """The stats of a subscription with times as text."""
    fields = asdict(stats)
    if stats.last_error:
        fields["last_error"]["at"] = rfc3339(stats.last_error.at)
    return {**fields, "since": rfc3339(stats.since), "next_retry_at": rfc3339(stats.next_retry_at)}


ROUTES = [
    Route("/v1/attempts", list_attempts, methods=["GET"]),
    Route("/v1/attempts/follow", follow, methods=["GET"]),
    Route("/v1/attempts/{id}", show, methods=["GET"]),
    Route("/v1/subscriptions/{id}/stats", show_subscription_stats, methods=["GET"]),
]
