"""Flow control of subscriptions: pause, resume, and what is shown of it. Decisions are in core/flow.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.counts import MAX_COUNTED
from hooksaga.core.flow import FlowStatus
from hooksaga.core.flow_view import flow_state
from hooksaga.core.models import Backlog
from hooksaga.operations.subscriptions import Subscription, show_subscription
from hooksaga.stages.flow_rows import FlowRow


@dataclass(frozen=True, slots=True)
class SubscriptionFlow:
    """Flow of one subscription. waiting: counted up to the `most` that the caller gave. oldest_waiting_at: when the
    first of them is or was due."""

    state: FlowStatus
    since: datetime | None
    until: datetime | None
    limit: int
    in_flight: int
    waiting: int
    oldest_waiting_at: datetime | None


class _FlowNow(FlowRow, frozen=True, kw_only=True):
    in_flight: int
    waiting: int
    oldest_waiting_at: datetime | None


async def flow_of(
    connection: Connection, subscription_ids: Sequence[int], *, most: int = MAX_COUNTED
) -> dict[int, SubscriptionFlow]:
    """Return the flow of each of these subscriptions by id."""
    params = {"ids": list(subscription_ids), "most": most}
    query = load_queries("subscription_flow")["flow_of_subscriptions"]
    rows = await fetch_rows(connection, query, params, _FlowNow)
    return {row.subscription_id: _flow(row) for row in rows}


def _flow(row: _FlowNow) -> SubscriptionFlow:
    state = flow_state(row.settings(), row.flow(), row.in_flight, row.now)
    return SubscriptionFlow(
        state=state.status,
        since=state.since,
        until=state.until,
        limit=state.limit,
        in_flight=row.in_flight,
        waiting=row.waiting,
        oldest_waiting_at=row.oldest_waiting_at,
    )


async def pause_subscription(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> Subscription:
    """Start no more deliveries of a subscription. Raises NotFound `subscription_not_found`."""
    params = {"id": subscription_id, "tenant_id": tenant_id}
    await connection.execute(load_queries("subscription_flow")["pause"], params)
    return await show_subscription(connection, subscription_id, tenant_id=tenant_id)


async def resume_subscription(
    connection: Connection, subscription_id: int, backlog: Backlog, *, tenant_id: str | None
) -> Subscription:
    """Deliver again; `discard` ends what waits now as dead letters. Raises NotFound `subscription_not_found`."""
    params = {"id": subscription_id, "tenant_id": tenant_id, "discard": backlog == "discard"}
    await connection.execute(load_queries("subscription_flow")["resume"], params)
    return await show_subscription(connection, subscription_id, tenant_id=tenant_id)
