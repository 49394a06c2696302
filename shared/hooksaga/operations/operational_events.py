"""Events that hooksaga makes about itself: stored like any event and delivered to their subscribers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_rows, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.operational_events import DeadDelivery, OperationalEvent, delivery_dead_lettered
from hooksaga.core.trace import Traced, correlation_id_of
from hooksaga.stages.batches import OnRefusal, refused_at_savepoints

BATCH = 500


@dataclass(frozen=True, slots=True)
class _StoredRow:
    id: int
    webhook_id: UUID


@dataclass(frozen=True, slots=True)
class _DeadRow:
    id: int
    saga_id: int
    subscription_id: int
    tenant_id: str
    event_type: str
    final_error_code: str | None
    failed_at: datetime
    webhook_id: UUID
    attempt_count: int
    callback_url: str


async def store_operational_events(
    connection: Connection, events: Sequence[OperationalEvent]
) -> list[Traced]:
    """Store the new events. Call it in the transaction that they describe; a trigger routes them."""
    if not events:
        return []
    columns = {
        "tenant_ids": [event.tenant_id for event in events],
        "event_types": [event.event_type.value for event in events],
        "external_ids": [event.key for event in events],
        "payloads": [event.payload for event in events],
    }
    query = load_queries("operational_events")["insert_operational_events"]
    rows = await fetch_rows(connection, query, columns, _StoredRow)
    return [Traced(row.id, correlation_id_of(row.webhook_id, None)) for row in rows]


async def store_dead_letter_events(
    connection: Connection, *, on_refusal: OnRefusal = lambda _row: None, limit: int = BATCH
) -> list[Traced]:
    """Create a `hooksaga.delivery.dead_lettered` event for each waiting dead letter, once, and return the events.

    A dead letter that the database rejects is reported to on_refusal and continues to wait.

    Events are stored and dead letters stop waiting in one transaction. Call again while it returns a full batch.
    """
    queries = load_queries("operational_events")
    async with transaction(connection):
        rows = await fetch_rows(connection, queries["take_dead_letters"], {"limit": limit}, _DeadRow)
        if not rows:
            return []

        async def tell(part: Sequence[_DeadRow]) -> list[Traced]:
            events = [delivery_dead_lettered(_dead(row)) for row in part]
            stored = await store_operational_events(connection, events)
            done = {"dead_letter_ids": [row.id for row in part]}
            await connection.execute(queries["forget_dead_letters"], done)
            return stored

        def leave(row: _DeadRow, error: RowRefused) -> None:
            on_refusal(RefusedRow(str(error), row.saga_id, None, row.subscription_id, row.id))

        return await refused_at_savepoints(connection, tell, rows, leave)


def _dead(row: _DeadRow) -> DeadDelivery:
    return DeadDelivery(
        dead_letter_id=row.id,
        saga_id=row.saga_id,
        event_id=event_id_text(row.webhook_id),
        event_type=row.event_type,
        tenant_id=row.tenant_id,
        subscription_id=row.subscription_id,
        callback_url=row.callback_url,
        error_code=row.final_error_code,
        attempts=row.attempt_count,
        failed_at=row.failed_at,
    )
