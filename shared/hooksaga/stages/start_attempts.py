"""Start attempts into the room of their subscriptions. The only place where jobs are made.

Two statements, each committed by itself: read the flow of the subscriptions and compute their room (core/flow.py); then
lock each flow row that is still as it was read, count what is in progress, and start. Two orchestrators never start
more than the room, because each holds the lock of a flow row while it counts. A crash leaks nothing, because what is in
progress is counted from rows. A third statement is needed where the time to look again has changed: a crash before it
costs only time.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hooksaga.adapters.database import Connection, fetch_rows, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.saga import RetryPolicy, SagaStatus
from hooksaga.stages.end_waiting import end_waiting
from hooksaga.stages.flow_rows import FlowKey, StartedRow, WaitingFlow, flow_columns, versions_of
from hooksaga.stages.saga_rows import MovedRow, SagaMoved, WaitingSaga
from hooksaga.stages.start_plan import ANY_NUMBER, BATCH, Places, StartPlan

MAX_KEYS = 1000
"""One call looks at most at so many ordering keys of a subscription; the next one goes on after them, at once if
something was started, otherwise SOON."""


@dataclass(slots=True)
class Started:
    """What one call did. moves: attempts that were started, and sagas that ended without another attempt.

    again: subscriptions that have more room and more that is due, or whose flow another session has locked or changed.
    wake_at: when each subscription is to be looked at, where the call has changed that.
    """

    moves: list[SagaMoved] = field(default_factory=list[SagaMoved])
    again: list[int] = field(default_factory=list[int])
    wake_at: dict[int, datetime] = field(default_factory=dict[int, datetime])


async def start_attempts(
    connection: Connection,
    defaults: RetryPolicy,
    *,
    subscription_ids: Sequence[int] = (),
    most_woken: int = BATCH,
    places: Places = ANY_NUMBER,
    least_wait: timedelta = timedelta(0),
) -> Started:
    """Start what is due and has room: of the named subscriptions, and of up to most_woken whose wake_at has come.

    Each starts an equal share of a batch, and no more than it has places. A wake_at is changed to a later
    one only when it has come, and lies at least least_wait ahead: where each change costs a message, no more than one
    of a subscription is on its way in that time. Raises RowRefused for sagas that the database rejects, after the
    others were started.
    """
    call = _Call(connection, defaults, places, least_wait)
    try:
        started = await call.run(subscription_ids, most_woken)
    except RowRefused as refused:
        if not call.rows:
            raise
        started = await _start_one_by_one(call, list(call.rows), refused)
    started.moves = call.moves
    return started


async def _start_one_by_one(call: "_Call", subscription_ids: Sequence[int], refused: RowRefused) -> Started:
    """Start each subscription by itself, and where that is rejected each saga."""
    done, rows = Started(), list[RefusedRow]()
    for subscription_id in subscription_ids:
        try:
            _add(done, await call.run([subscription_id], 0))
        except RowRefused:
            for saga in await _waiting_of(call.connection, subscription_id):
                try:
                    _add(done, await call.run([subscription_id], 0, only=saga.id))
                except RowRefused as error:
                    rows.append(replace(saga.refused_row(), reason=str(error)))
                    refused = error
    if rows:
        refused.done, refused.rows = call.moves, rows
        raise refused
    return done


def _add(done: Started, more: Started) -> None:
    done.again += more.again
    done.wake_at |= more.wake_at


async def _waiting_of(connection: Connection, subscription_id: int) -> list[WaitingSaga]:
    params = {"subscription_id": subscription_id, "limit": BATCH}
    return await fetch_rows(connection, load_queries("orchestrate")["due_sagas"], params, WaitingSaga)


class _Call:
    """One call. rows: the flow that its last run has read, by subscription. moves: what all its runs have committed,
    also those that were refused later."""

    def __init__(
        self, connection: Connection, defaults: RetryPolicy, places: Places, least_wait: timedelta
    ) -> None:
        self.connection = connection
        self.rows: dict[int, WaitingFlow] = {}
        self.moves: list[SagaMoved] = []
        self._defaults = defaults
        self._places = places
        self._least_wait = least_wait

    async def run(self, subscription_ids: Sequence[int], most_woken: int, only: int | None = None) -> Started:
        named = {"subscription_ids": list(subscription_ids), "most_woken": most_woken}
        query = load_queries("orchestrate")["flow_to_start"]
        rows = await fetch_rows(self.connection, query, named, WaitingFlow)
        self.rows = {row.subscription_id: row for row in rows}
        ended = await end_waiting(self.connection, self._defaults, rows, only=only)
        self.moves += ended.moves
        share = max(1, BATCH // max(1, len(rows)))
        plans = [
            StartPlan(
                row, row.settings(self._defaults), ended.left.get(row.subscription_id), share, self._places
            )
            for row in rows
        ]
        async with refusals():
            started = await self._start([plan for plan in plans if plan.may_start], only)
            self.moves += [self._moved(row) for row in started if row.job_id is not None]
            await self._end_exhausted(started)
            of_each: dict[int, list[StartedRow]] = defaultdict(list)
            for one in started:
                of_each[one.subscription_id].append(one)
            for plan in plans:
                plan.finish(of_each[plan.row.subscription_id], self._least_wait)
            wakes = await self._write(plans)
        return Started(again=[plan.row.subscription_id for plan in plans if plan.again], wake_at=wakes)

    async def _write(self, plans: Sequence[StartPlan]) -> dict[int, datetime]:
        """Write the flows that have changed. Returns when to look at these subscriptions again. What another session
        has changed meanwhile is looked at again."""
        changed = [(plan.row, plan.flow) for plan in plans if plan.flow != plan.before]
        if not changed:
            return {}
        query = load_queries("orchestrate")["write_flow"]
        rows = await fetch_rows(self.connection, query, flow_columns(changed), FlowKey)
        written = {row.subscription_id for row in rows}
        for plan in plans:
            plan.again |= plan.flow != plan.before and plan.row.subscription_id not in written
        return {
            row.subscription_id: flow.wake_at
            for row, flow in changed
            if flow.wake_at is not None and row.subscription_id in written
        }

    async def _start(self, plans: Sequence[StartPlan], only: int | None) -> list[StartedRow]:
        """Start, oldest due first."""
        if not plans:
            return []
        limit = self._defaults.max_retry_limit
        params: dict[str, Any] = {
            **versions_of([plan.row for plan in plans]),
            "in_flight": [plan.room.in_flight for plan in plans],
            "starts": [plan.starts for plan in plans],
            "probes": [plan.room.probe for plan in plans],
            "tokens": [plan.tokens for plan in plans],
            "slow": [plan.slow for plan in plans],
            "max_attempts": [plan.row.max_retry_limit or limit for plan in plans],
            "has_ordered": [plan.row.oldest_ordered_at is not None for plan in plans],
            "cursors": [plan.row.order_cursor for plan in plans],
            "tokens_at": plans[0].row.now,
            "most_keys": MAX_KEYS,
            "only": only,
        }
        name = "start_due_with_rules" if any(plan.has_rules for plan in plans) else "start_due"
        rows = await fetch_rows(self.connection, load_queries("orchestrate")[name], params, StartedRow)
        return sorted(rows, key=lambda row: row.job_id or 0)

    async def _end_exhausted(self, started: Sequence[StartedRow]) -> None:
        """End sagas whose limit was lowered below their attempts."""
        rows = [row for row in started if row.saga_id is not None and row.job_id is None]
        if not rows:
            return
        columns = {
            "saga_ids": [row.saga_id for row in rows],
            "error_codes": [row.final_error_code for row in rows],
            "reasons": [None for _ in rows],
        }
        query = load_queries("orchestrate")["dead_letter_waiting"]
        dead = {
            row.saga_id: row.dead_letter_id
            for row in await fetch_rows(self.connection, query, columns, MovedRow)
        }
        self.moves += [self._moved(row, dead[row.saga_id]) for row in rows if row.saga_id in dead]

    def _moved(self, row: StartedRow, dead_letter_id: int | None = None) -> SagaMoved:
        assert row.saga_id is not None
        assert row.attempt_count is not None
        assert row.next_attempt_at is not None
        own_limit = self.rows[row.subscription_id].max_retry_limit
        return SagaMoved(
            saga_id=row.saga_id,
            webhook_id=row.webhook_id,
            subscription_id=row.subscription_id,
            status=SagaStatus.DEAD_LETTERED if row.job_id is None else SagaStatus.IN_PROGRESS,
            attempt_count=row.attempt_count,
            next_attempt_at=row.next_attempt_at,
            final_error_code=row.final_error_code,
            job_id=row.job_id,
            dead_letter_id=dead_letter_id,
            max_retry_limit=own_limit or self._defaults.max_retry_limit,
            previous_status=None if row.previous_status is None else SagaStatus(row.previous_status),
            traceparent=row.traceparent,
            slow=row.slow,
        )
