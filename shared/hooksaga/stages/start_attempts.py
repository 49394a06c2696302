"""Start attempts into the room of their subscriptions. The only place where jobs are made.

One transaction: lock the flow rows of the subscriptions, compute their room (core/flow.py), then count what is in
progress and start in one statement. Two orchestrators never start more than the room, because each holds the lock of a
flow row while it counts; nothing is leaked by a crash, because what is in progress is counted from rows.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hooksaga.adapters.database import Connection, fetch_rows, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.flow import Flow, FlowSettings, Room, after_start, next_start_at, room
from hooksaga.core.saga import RetryPolicy, SagaStatus
from hooksaga.stages.end_waiting import end_waiting
from hooksaga.stages.flow_rows import LockedFlow, StartedRow, flow_columns
from hooksaga.stages.saga_rows import MovedRow, SagaMoved, WaitingSaga

BATCH = 500
MAX_KEYS = 1000
"""One call looks at most at so many ordering keys of a subscription; the next one goes on after them, at once if
something was started, otherwise SOON."""

SOON = timedelta(seconds=1)
"""A saga that another session has locked, or that waits for an earlier event to be routed, is looked at again then."""


class Places:
    """Places for attempts in the process that sends them. This one has any number."""

    def is_late(self, subscription_id: int) -> bool:
        """Return whether an attempt in flight takes long, although the flow row does not say so yet."""
        return False

    def left_for(self, subscription_id: int, *, slow: bool) -> int:
        """Return how many more attempts of a subscription may start now, in the quick or in the slow lane."""
        return BATCH


ANY_NUMBER = Places()


@dataclass(slots=True)
class Started:
    """What one call did. moves: attempts that were started, and sagas that ended without another attempt.

    again: subscriptions that have more room and more that is due, or whose flow row another orchestrator has locked.
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
    one_call = _Call(connection, defaults, places, least_wait)
    try:
        return await one_call.run(subscription_ids, most_woken)
    except RowRefused as refused:
        if not one_call.locked:
            raise
        return await _start_one_by_one(one_call, list(one_call.locked), refused)


async def _start_one_by_one(call: "_Call", subscription_ids: Sequence[int], refused: RowRefused) -> Started:
    """Start each subscription in its own transaction, and where that is rejected each saga."""
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
        refused.done, refused.rows = done.moves, rows
        raise refused
    return done


def _add(done: Started, more: Started) -> None:
    done.moves += more.moves
    done.again += more.again
    done.wake_at |= more.wake_at


async def _waiting_of(connection: Connection, subscription_id: int) -> list[WaitingSaga]:
    params = {"subscription_id": subscription_id, "limit": BATCH}
    return await fetch_rows(connection, load_queries("orchestrate")["due_sagas"], params, WaitingSaga)


class _Call:
    """One call, and the subscriptions whose flow rows its last transaction has locked."""

    def __init__(
        self, connection: Connection, defaults: RetryPolicy, places: Places, least_wait: timedelta
    ) -> None:
        self.connection = connection
        self.locked: dict[int, LockedFlow] = {}
        self._defaults = defaults
        self._places = places
        self._least_wait = least_wait

    async def run(self, subscription_ids: Sequence[int], most_woken: int, only: int | None = None) -> Started:
        queries = load_queries("orchestrate")
        named = {"subscription_ids": list(subscription_ids), "most_woken": most_woken}
        async with transaction(self.connection):
            rows = await fetch_rows(self.connection, queries["lock_flow"], named, LockedFlow)
            self.locked = {row.subscription_id: row for row in rows}
            ended = await end_waiting(self.connection, self._defaults, rows, only=only)
            share, left = max(1, BATCH // max(1, len(rows))), ended.left
            plans = [
                _Plan(row, row.settings(self._defaults), left.get(row.subscription_id), share, self._places)
                for row in rows
            ]
            starting = [plan for plan in plans if plan.may_start]
            started = await self._start(starting, only)
            dead = await self._end_exhausted(started)
            of_each: dict[int, list[StartedRow]] = defaultdict(list)
            for one in started:
                of_each[one.subscription_id].append(one)
            for plan in plans:
                plan.finish(of_each[plan.row.subscription_id], self._least_wait)
            changed = [(plan.row, plan.flow) for plan in plans if plan.flow != plan.row.flow()]
            if changed:
                await fetch_rows(self.connection, queries["write_flow"], flow_columns(changed), _Subscription)
        skipped = await self._skipped([one for one in subscription_ids if one not in self.locked])
        return Started(
            moves=ended.moves
            + [self._moved(row, dead) for row in started if row.job_id is not None or row.saga_id in dead],
            again=skipped + [plan.row.subscription_id for plan in plans if plan.again],
            wake_at={row.subscription_id: flow.wake_at for row, flow in changed if flow.wake_at is not None},
        )

    async def _skipped(self, missing: Sequence[int]) -> list[int]:
        """Return those that exist: another orchestrator has locked them."""
        if not missing:
            return []
        params = {"subscription_ids": list(missing)}
        query = load_queries("orchestrate")["known_subscriptions"]
        return [
            row.subscription_id for row in await fetch_rows(self.connection, query, params, _Subscription)
        ]

    async def _start(self, plans: Sequence["_Plan"], only: int | None) -> list[StartedRow]:
        """Start, oldest due first."""
        if not plans:
            return []
        limit = self._defaults.max_retry_limit
        params: dict[str, Any] = {
            "subscription_ids": [plan.row.subscription_id for plan in plans],
            "in_flight": [plan.room.in_flight for plan in plans],
            "starts": [plan.starts for plan in plans],
            "probes": [plan.room.probe for plan in plans],
            "slow": [plan.slow for plan in plans],
            "max_attempts": [plan.row.max_retry_limit or limit for plan in plans],
            "has_ordered": [plan.row.oldest_ordered_at is not None for plan in plans],
            "cursors": [plan.row.order_cursor for plan in plans],
            "most_keys": MAX_KEYS,
            "only": only,
        }
        name = "start_due_in_order" if any(params["has_ordered"]) else "start_due"
        rows = await fetch_rows(self.connection, load_queries("orchestrate")[name], params, StartedRow)
        return sorted(rows, key=lambda row: row.job_id or 0)

    async def _end_exhausted(self, started: Sequence[StartedRow]) -> dict[int, int | None]:
        """End sagas whose limit was lowered below their attempts. Returns their dead letters by saga."""
        rows = [row for row in started if row.saga_id is not None and row.job_id is None]
        if not rows:
            return {}
        columns = {
            "saga_ids": [row.saga_id for row in rows],
            "error_codes": [row.final_error_code for row in rows],
            "reasons": [None for _ in rows],
        }
        query = load_queries("orchestrate")["dead_letter_waiting"]
        dead = await fetch_rows(self.connection, query, columns, MovedRow)
        return {row.saga_id: row.dead_letter_id for row in dead}

    def _moved(self, row: StartedRow, dead: Mapping[int, int | None]) -> SagaMoved:
        assert row.saga_id is not None
        assert row.attempt_count is not None
        assert row.next_attempt_at is not None
        own_limit = self.locked[row.subscription_id].max_retry_limit
        return SagaMoved(
            saga_id=row.saga_id,
            webhook_id=row.webhook_id,
            subscription_id=row.subscription_id,
            status=SagaStatus.DEAD_LETTERED if row.job_id is None else SagaStatus.IN_PROGRESS,
            attempt_count=row.attempt_count,
            next_attempt_at=row.next_attempt_at,
            final_error_code=row.final_error_code,
            job_id=row.job_id,
            dead_letter_id=dead.get(row.saga_id),
            max_retry_limit=own_limit or self._defaults.max_retry_limit,
            previous_status=None if row.previous_status is None else SagaStatus(row.previous_status),
            traceparent=row.traceparent,
            slow=row.slow,
        )


class _Plan:
    """What may start of one subscription, and then its flow afterwards and whether it is to be looked at again."""

    def __init__(
        self, row: LockedFlow, settings: FlowSettings, endings_left: bool | None, share: int, places: Places
    ) -> None:
        self.row = row
        self.settings = settings
        self.room: Room = room(settings, row.flow(), row.now)
        self.slow = row.is_slow(row.now) or places.is_late(row.subscription_id)
        self.share = min(self.room.starts, share)
        self.starts = min(self.share, places.left_for(row.subscription_id, slow=self.slow))
        self.again = bool(endings_left)
        self.may_start = (
            row.deliverable and self.room.starts > 0 and row.first_at is not None and not self.again
        )
        self.flow: Flow = row.flow()
        if row.first_at is None or (row.discard_through and endings_left is False):
            self.flow = msgspec.structs.replace(self.flow, discard_through=0)

    def finish(self, mine: Sequence[StartedRow], least_wait: timedelta) -> None:
        """Compute the flow after the starts of this subscription, and when it is to be looked at."""
        row, wake_at = self.row, self._closed_until()
        if self.may_start:
            sagas = [one.saga_id for one in mine if one.saga_id is not None and one.job_id is not None]
            left = next(one for one in mine if one.saga_id is None)
            self.flow = after_start(self.settings, self.flow, self.room, sagas, row.now)
            if left.order_cursor is not None:
                self.flow = msgspec.structs.replace(self.flow, order_cursor=left.order_cursor)
            wake_at = self._wake_at(left, len(mine) - 1)
        self.flow = msgspec.structs.replace(self.flow, wake_at=self._spaced(wake_at, least_wait))

    def _spaced(self, wake_at: datetime | None, least_wait: timedelta) -> datetime | None:
        """Return a time that is least_wait ahead, or the one that is planned already where that is not much later."""
        if wake_at is None or not least_wait:
            return wake_at
        wake_at, planned = max(wake_at, self.row.now + least_wait), self.row.wake_at
        is_soon_enough = planned is not None and self.row.now < planned < wake_at + least_wait
        return planned if is_soon_enough else wake_at

    def _closed_until(self) -> datetime | None:
        """Return when time opens the room of a subscription that has something waiting."""
        row = self.row
        if row.first_at is None or self.again:
            return None
        if not row.deliverable:
            return max(row.first_at, row.now + SOON)
        until = self.room.until
        return None if until is None else max(until, row.first_at)

    def _wake_at(self, left: StartedRow, started: int) -> datetime | None:
        size, due, now = left.size or 0, left.due or 0, self.row.now
        times = [left.next_due_at]
        if due > size or left.ordered_blocked or left.order_cursor is not None:
            opens_at = next_start_at(self.settings, self.flow, now)
            times.append(opens_at)
            is_cut = size == self.starts < self.room.starts
            more_keys = left.order_is_cut and started > 0
            self.again = self.again or (opens_at is None and (is_cut or more_keys))
        if left.ordered_blocked or left.order_is_cut or started < min(size, due):
            times.append(now + SOON)
        return min((at for at in times if at is not None), default=None)


class _Subscription(msgspec.Struct, frozen=True):
    subscription_id: int
