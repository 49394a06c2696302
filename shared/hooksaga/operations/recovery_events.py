"""Tell subscribers that an endpoint works again, once for each run of failures that an event has told.

note_verdicts writes down since when an endpoint fails, in the transaction of the event that tells it. The event that
tells the recovery is stored in the transaction that clears it, so there is one for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hooksaga.adapters.database import Connection, fetch_rows, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.operational_events import RecoveredEndpoint, subscription_recovered
from hooksaga.core.trace import Traced
from hooksaga.operations.operational_events import BATCH, store_operational_events
from hooksaga.stages.batches import OnRefusal, refused_at_savepoints


@dataclass(frozen=True, slots=True)
class RecoveriesTold:
    """Endpoints whose recovery one call told, and the events that it stored. As many as the limit: call again."""

    endpoints: list[RecoveredEndpoint] = field(default_factory=list[RecoveredEndpoint])
    events: list[Traced] = field(default_factory=list[Traced])


async def tell_recoveries(
    connection: Connection, *, on_refusal: OnRefusal = lambda _row: None, limit: int = BATCH
) -> RecoveriesTold:
    """Store a `hooksaga.subscription.recovered` event for each endpoint that works again, and note it, in one
    transaction.

    An endpoint that the database rejects is reported to on_refusal and found again by the next call.
    """
    queries = load_queries("recovery_events")
    events: list[Traced] = []
    async with transaction(connection):
        rows = await fetch_rows(connection, queries["lock_recovered"], {"limit": limit}, RecoveredEndpoint)
        if not rows:
            return RecoveriesTold()

        async def tell(part: Sequence[RecoveredEndpoint]) -> list[RecoveredEndpoint]:
            ids = {"subscription_ids": [one.id for one in part]}
            await connection.execute(queries["note_recovered"], ids)
            events.extend(
                await store_operational_events(connection, [subscription_recovered(one) for one in part])
            )
            return [*part]

        def leave(row: RecoveredEndpoint, error: RowRefused) -> None:
            on_refusal(RefusedRow(str(error), subscription_id=row.id))

        done = await refused_at_savepoints(connection, tell, rows, leave)
    return RecoveriesTold(done, events)
