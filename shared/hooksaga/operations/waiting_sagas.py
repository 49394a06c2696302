"""What waiting sagas wait for. Decisions are in core/flow_view.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.flow_view import WaitsFor, flow_state, waits_for
from hooksaga.core.saga import SagaStatus
from hooksaga.stages.flow_rows import FlowRow

WAITING = (SagaStatus.PENDING.value, SagaStatus.PENDING_RETRY.value)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a waiting saga waits for. earlier_saga_id: the saga before it in the order, if it waits for one."""

    waits_for: WaitsFor
    earlier_saga_id: int | None = None


class _SagaFlow(FlowRow, frozen=True, kw_only=True):
    saga_id: int
    next_attempt_at: datetime
    in_flight: int
    earlier_saga_id: int | None
    earlier_event: bool


async def waiting_of(connection: Connection, saga_ids: Sequence[int]) -> dict[int, Waiting]:
    """Return what each of these sagas waits for, by id. Sagas that do not wait are left out."""
    if not saga_ids:
        return {}
    query = load_queries("subscription_flow")["flow_of_sagas"]
    rows = await fetch_rows(connection, query, {"saga_ids": list(saga_ids)}, _SagaFlow)
    return {row.saga_id: _waiting(row) for row in rows}


def _waiting(row: _SagaFlow) -> Waiting:
    status = flow_state(row.settings(), row.flow(), row.in_flight, row.now).status
    is_first = row.earlier_saga_id is None and not row.earlier_event
    reason = waits_for(status, row.next_attempt_at, row.now, is_first=is_first)
    return Waiting(reason, row.earlier_saga_id if reason is WaitsFor.ORDER else None)
