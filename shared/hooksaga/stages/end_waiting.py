"""End waiting sagas without another attempt: their subscription is inactive, or they were canceled, discarded, expired.

This needs no room. A large backlog ends in batches, each a transaction: a dead letter copies its payload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.not_sent import ENDED, Inactive, why_not_sent
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import Due, End, IllegalMove, RetryPolicy, Saga, SagaStatus, decide
from hooksaga.stages.flow_rows import FlowKey, WaitingFlow, versions_of
from hooksaga.stages.saga_rows import LockedSaga, MovedRow, SagaMoved, WaitingSaga

BATCH = 500


@dataclass(slots=True)
class Ended:
    """Sagas that were ended, and for each subscription with such sagas whether more are left."""

    moves: list[SagaMoved] = field(default_factory=list[SagaMoved])
    left: dict[int, bool] = field(default_factory=dict[int, bool])


async def end_waiting(
    connection: Connection, defaults: RetryPolicy, rows: Sequence[WaitingFlow], *, only: int | None = None
) -> Ended:
    """End what is to end of these subscriptions, a batch in all, in one transaction. Where another session has locked a
    flow row or changed it since it was read, everything is left.

    only: end at most this saga. Where it could be looked at, nothing is known of the others after that.
    """
    endings = {row.subscription_id: ending for row in rows if (ending := row.ending()) is not None}
    if not endings:
        return Ended()
    read = [row for row in rows if row.subscription_id in endings]
    limit, queries = max(1, BATCH // (2 * len(endings))), load_queries("orchestrate")
    async with transaction(connection):
        locked = await fetch_rows(connection, queries["lock_flow"], versions_of(read), FlowKey)
        mine = [endings[row.subscription_id] for row in locked]
        params = {
            "subscription_ids": [row.subscription_id for row in locked],
            "due_before": [ending.due_before for ending in mine],
            "through": [ending.through for ending in mine],
            "causes": [ending.cause.value for ending in mine],
            "limit": limit,
            "only": only,
        }
        sagas = await fetch_rows(connection, queries["end_waiting"], params, WaitingSaga)
        moves = await end_sagas(connection, defaults, sagas)
    found = [saga.subscription_id for saga in sagas]
    known = {row.subscription_id: found.count(row.subscription_id) >= limit for row in locked}
    left = {one: known.get(one, True) for one in endings if only is None or one not in known}
    return Ended(moves, left)


async def end_sagas(
    connection: Connection, defaults: RetryPolicy, waiting: Sequence[WaitingSaga]
) -> list[SagaMoved]:
    """Make dead letters of these locked sagas, each for its cause. Those that do not wait stay as they are."""
    decided: list[tuple[WaitingSaga, Saga]] = []
    for row in waiting:
        is_inactive = row.cause == ErrorCode.SUBSCRIPTION_INACTIVE
        trigger = Due(deliverable=False) if is_inactive else End(ErrorCode(row.cause))
        try:
            decided.append((row, decide(row.saga(), trigger, row.policy(defaults), row.now)))
        except IllegalMove:
            continue
    if not decided:
        return []
    inactive = [(row, saga) for row, saga in decided if row.cause == ErrorCode.SUBSCRIPTION_INACTIVE]
    reasons = await reasons_of_inactive(connection, inactive)
    columns = {
        "saga_ids": [saga.id for _, saga in decided],
        "error_codes": [saga.final_error_code for _, saga in decided],
        "reasons": [reasons.get(saga.id) or ENDED[ErrorCode(row.cause)] for row, saga in decided],
    }
    query = load_queries("orchestrate")["dead_letter_waiting"]
    dead = {row.saga_id: row.dead_letter_id for row in await fetch_rows(connection, query, columns, MovedRow)}
    return [_moved(row, saga, defaults, dead[saga.id]) for row, saga in decided if saga.id in dead]


async def reasons_of_inactive(
    connection: Connection, unsent: Sequence[tuple[LockedSaga, Saga]]
) -> Mapping[int, str]:
    """Return why each saga ended without another attempt: the reason its subscription receives no deliveries."""
    if not unsent:
        return {}
    ids = {"ids": sorted({row.subscription_id for row, _ in unsent})}
    query = load_queries("orchestrate")["inactive_subscriptions"]
    found = {one.id: one for one in await fetch_rows(connection, query, ids, Inactive)}
    return {
        saga.id: why_not_sent(found.get(row.subscription_id), saga.final_error_code) for row, saga in unsent
    }


async def cancel_saga(
    connection: Connection, defaults: RetryPolicy, saga_id: int, *, tenant_id: str | None = None
) -> SagaMoved:
    """End a waiting saga as DeadLettered with `canceled`. Canceling it again returns the same result.

    Raises NotFound `saga_not_found`, or Conflict `saga_not_waiting` for a saga that is in progress or has ended.
    """
    queries = load_queries("orchestrate")
    named = {"saga_ids": [saga_id], "tenant_id": tenant_id}
    async with transaction(connection):
        rows = await fetch_rows(connection, queries["lock_sagas_by_id"], named, WaitingSaga)
        if not rows:
            raise NotFound("saga_not_found", f"there is no saga {saga_id}")
        row = rows[0]
        if row.final_error_code == ErrorCode.CANCELED and row.status == SagaStatus.DEAD_LETTERED:
            dead = await fetch_row(connection, queries["dead_letter_of_saga"], {"saga_id": row.id}, MovedRow)
            return _moved(row, row.saga(), defaults, dead.dead_letter_id if dead else None)
        moved = await end_sagas(connection, defaults, rows)
    if not moved:
        raise Conflict("saga_not_waiting", f"saga {saga_id} is {row.status}: only a waiting saga is canceled")
    return moved[0]


def _moved(row: WaitingSaga, saga: Saga, defaults: RetryPolicy, dead_letter_id: int | None) -> SagaMoved:
    return SagaMoved(
        saga_id=saga.id,
        webhook_id=row.webhook_id,
        subscription_id=row.subscription_id,
        status=saga.status,
        attempt_count=saga.attempt_count,
        next_attempt_at=saga.next_attempt_at,
        final_error_code=saga.final_error_code,
        dead_letter_id=dead_letter_id,
        max_retry_limit=row.policy(defaults).max_retry_limit,
        previous_status=SagaStatus(row.status),
        traceparent=row.traceparent,
    )
