"""Explanation why a subscription got an event, or did not: the state that the router saw, and the result. Reads only.

The facts are those at routing time, not the current ones: the database records each change of the columns that routing
reads (subscription_history), and the router records which changes it could see (routing_decisions).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.event_attributes import values_of
from hooksaga.core.event_patterns import matching_patterns
from hooksaga.core.filters import FailedCondition, failed_condition
from hooksaga.core.routing import Facts, Reason, RoutingState, StartedBy, why_not_matched
from hooksaga.operations.explained_pages import Place, Rank, Subject, find_page
from hooksaga.operations.missing_event import missing_event
from hooksaga.operations.waiting_sagas import WAITING, Waiting, waiting_of

MAX_DECISIONS = 250
"""Maximum of subscriptions in one response."""


@dataclass(frozen=True, slots=True)
class SagaStanding:
    """The newest saga of a pair. started_by is None if the routing was not recorded. attempt_limit: the current one.
    waiting: what it waits for; None when it does not wait."""

    id: int
    status: str
    started_by: StartedBy | None
    created_at: datetime
    attempt_count: int
    attempt_limit: int
    next_attempt_at: datetime
    final_error_code: str | None
    dead_letter_id: int | None
    dead_letter_reason: str | None
    waiting: Waiting | None


@dataclass(frozen=True, slots=True)
class Decision:
    """One subscription. matched: by the router; None while the event waits, if the routing was not recorded, or if the
    attributes that a filter compared were erased.

    matched_by: those of its event types that match the event. failed_condition: what of its filter does not match the
    event, if that is the reason. then: the state that the router saw; None if it saw
    none. saga: None for a matched one means that retention deleted it.
    """

    subscription_id: int
    subscription_created_at: datetime
    callback_url: str
    matched: bool | None
    matched_by: list[str]
    reason: Reason | None
    failed_condition: FailedCondition | None
    then: Facts | None
    now: Facts
    saga: SagaStanding | None


@dataclass(frozen=True, slots=True)
class Routing:
    """One event's routing, with a page of its tenant's subscriptions. next: None when no subscription is left to show.

    An event with very many subscriptions is routed in parts: it waits until the last, with the sagas_started so far.
    """

    event_id: int
    webhook_id: UUID
    tenant_id: str
    event_type: str
    test_subscription_id: int | None
    accepted_at: datetime
    attributes: str
    is_erased: bool
    waiting_since: datetime | None
    routed_at: datetime | None
    sagas_started: int | None
    decisions: Sequence[Decision] = ()
    next: Place | None = None

    @property
    def state(self) -> RoutingState:
        """State of the routing. An event that was put into the outbox again counts as routed."""
        if self.routed_at is not None:
            return RoutingState.ROUTED
        return RoutingState.UNRECORDED if self.waiting_since is None else RoutingState.WAITING


async def explain_event(
    connection: Connection,
    webhook_id: UUID,
    *,
    tenant_id: str | None,
    default_attempt_limit: int,
    after: Place | None = None,
    limit: int = MAX_DECISIONS,
) -> Routing:
    """Explain an event's routing: matched subscriptions, then those that ever matched its type, then others; by id.

    An event that was not routed, or not recorded, shows subscriptions with sagas only. Raises NotFound
    `event_not_found`, also for another tenant's.
    """
    queries = load_queries("explain")
    params = {"webhook_id": webhook_id, "tenant_id": tenant_id}
    routing = await fetch_row(connection, queries["show_routing"], params, Routing)
    if routing is None:
        raise await missing_event(connection, webhook_id)
    last = Rank.OTHERS if routing.state is RoutingState.ROUTED else Rank.STARTED
    subject = Subject(routing.event_id, routing.tenant_id, routing.event_type, last)
    ids, following = await find_page(connection, subject, after or Place(), limit)
    wanted = {"event_id": routing.event_id, "subscription_ids": ids}
    rows = await fetch_rows(connection, queries["decisions_of_subscriptions"], wanted, _Row)
    open_sagas = [row.saga_id for row in rows if row.saga_id is not None and row.saga_status in WAITING]
    waiting = await waiting_of(connection, open_sagas)
    decisions = [_decision(routing, row, waiting, default_attempt_limit) for row in rows]
    return replace(routing, decisions=decisions, next=following)


@dataclass(frozen=True, slots=True)
class _Row:
    """then_… are all null if the router saw no state. routed: the router started a saga; by_router: the newest one."""

    subscription_id: int
    subscription_created_at: datetime
    callback_url: str
    max_retry_limit: int | None
    now_event_types: list[str]
    now_filter: str | None
    now_active: bool
    now_verified: bool
    now_eligible_since: datetime | None
    now_deleted_at: datetime | None
    then_event_types: list[str] | None
    then_filter: str | None
    then_active: bool | None
    then_verified: bool | None
    then_eligible_since: datetime | None
    then_deleted_at: datetime | None
    then_in_time: bool
    saga_id: int | None
    saga_status: str | None
    saga_created_at: datetime | None
    attempt_count: int | None
    next_attempt_at: datetime | None
    final_error_code: str | None
    requeued_from: int | None
    resent_from: int | None
    dead_letter_id: int | None
    dead_letter_reason: str | None
    routed: bool
    by_router: bool


def _decision(
    routing: Routing, row: _Row, waiting: Mapping[int, Waiting], default_attempt_limit: int
) -> Decision:
    then, reason, matched, failed = _then(row), None, None, None
    if routing.state is RoutingState.ROUTED:
        if not row.routed:
            failed = _failed_condition(routing, then)
            reason = why_not_matched(
                then,
                routing.event_type,
                in_time=row.then_in_time,
                test_of_another=routing.test_subscription_id not in (None, row.subscription_id),
                passes_filter=failed is None,
            )
        if (
            routing.is_erased
            and not row.routed
            and reason in (None, Reason.FILTERED)
            and then
            and then.filter
        ):
            reason = None  # what its filter compared is gone
        else:
            matched = reason is None
    return Decision(
        subscription_id=row.subscription_id,
        subscription_created_at=row.subscription_created_at,
        callback_url=row.callback_url,
        matched=matched,
        matched_by=matching_patterns(then.event_types, routing.event_type) if matched and then else [],
        reason=reason,
        failed_condition=failed if reason is Reason.FILTERED else None,
        then=then,
        now=Facts(
            row.now_event_types,
            row.now_active,
            row.now_verified,
            row.now_eligible_since,
            row.now_deleted_at,
            row.now_filter,
        ),
        saga=_saga(routing, row, waiting, default_attempt_limit),
    )


def _failed_condition(routing: Routing, facts: Facts | None) -> FailedCondition | None:
    if facts is None or facts.filter is None or routing.test_subscription_id is not None:
        return None
    return failed_condition(json.loads(facts.filter), values_of(routing.attributes))


def _then(row: _Row) -> Facts | None:
    if row.then_event_types is None or row.then_active is None or row.then_verified is None:
        return None
    return Facts(
        row.then_event_types,
        row.then_active,
        row.then_verified,
        row.then_eligible_since,
        row.then_deleted_at,
        row.then_filter,
    )


def _saga(
    routing: Routing, row: _Row, waiting: Mapping[int, Waiting], default_attempt_limit: int
) -> SagaStanding | None:
    if row.saga_id is None:
        return None
    assert row.saga_status is not None
    assert row.saga_created_at is not None
    assert row.attempt_count is not None
    assert row.next_attempt_at is not None
    return SagaStanding(
        id=row.saga_id,
        status=row.saga_status,
        started_by=_started_by(routing, row),
        created_at=row.saga_created_at,
        attempt_count=row.attempt_count,
        attempt_limit=row.max_retry_limit or default_attempt_limit,
        next_attempt_at=row.next_attempt_at,
        final_error_code=row.final_error_code,
        dead_letter_id=row.dead_letter_id,
        dead_letter_reason=row.dead_letter_reason,
        waiting=waiting.get(row.saga_id),
    )


def _started_by(routing: Routing, row: _Row) -> StartedBy | None:
    if row.requeued_from is not None:
        return StartedBy.REQUEUE
    if row.resent_from is not None:
        return StartedBy.RESEND
    if routing.state is RoutingState.UNRECORDED:
        return None
    return StartedBy.ROUTING if row.by_router else StartedBy.BACKFILL
