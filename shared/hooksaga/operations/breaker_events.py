"""Tell subscribers that circuit breakers have opened or closed: once each, also after a crash between two statements.

The orchestrator opens and closes them and writes nothing else. The health monitor compares their state with what it has
told. A breaker that opens and closes between two looks is not told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_rows, fetch_values, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.flow import PAYLOAD_CODES
from hooksaga.core.operational_events import BreakerChange, OperationalType, breaker_events
from hooksaga.core.outcomes import UNCOUNTED
from hooksaga.core.trace import Traced
from hooksaga.operations.operational_events import BATCH, store_operational_events
from hooksaga.stages.batches import OnRefusal, refused_at_savepoints


@dataclass(frozen=True, slots=True)
class BreakerTold:
    """One opening (closed_at None) or closing of a circuit breaker, for the log. It contains no callback URL."""

    subscription_id: int
    tenant_id: str
    opened_at: datetime
    closed_at: datetime | None
    consecutive_failures: int | None
    error_code: str | None


@dataclass(frozen=True, slots=True)
class BreakersTold:
    """What one call told, and the events that it stored. looked_at: changes found; as many as the limit: call again."""

    changes: list[BreakerTold] = field(default_factory=list[BreakerTold])
    events: list[Traced] = field(default_factory=list[Traced])
    looked_at: int = 0


async def tell_breakers(
    connection: Connection, *, on_refusal: OnRefusal = lambda _row: None, limit: int = BATCH
) -> BreakersTold:
    """Store the events of circuit breakers that have changed, and note what was told, in one transaction.

    A change that the database rejects is reported to on_refusal and found again by the next call.
    """
    queries = load_queries("breaker_events")
    wanted = {
        "limit": limit,
        "uncounted": [*UNCOUNTED, *sorted(PAYLOAD_CODES)],
        "opened_type": OperationalType.BREAKER_OPENED.value,
        "closed_type": OperationalType.BREAKER_CLOSED.value,
    }
    events: list[Traced] = []
    async with transaction(connection):
        rows = await fetch_rows(connection, queries["lock_breaker_changes"], wanted, BreakerChange)
        if not rows:
            return BreakersTold()

        async def tell(part: Sequence[BreakerChange]) -> list[BreakerChange]:
            told = {
                "subscription_ids": [one.id for one in part],
                "told_at": [one.opened_at for one in part],
            }
            await fetch_values(connection, queries["note_told"], told)
            made = [event for one in part for event in breaker_events(one)]
            events.extend(await store_operational_events(connection, made))
            return [*part]

        def leave(row: BreakerChange, error: RowRefused) -> None:
            on_refusal(RefusedRow(str(error), subscription_id=row.id))

        done = await refused_at_savepoints(connection, tell, rows, leave)
    return BreakersTold([told for one in done for told in _told(one)], events, len(done))


def _told(change: BreakerChange) -> list[BreakerTold]:
    told: list[BreakerTold] = []
    if change.told_at is not None:
        told.append(BreakerTold(change.id, change.tenant_id, change.told_at, change.closed_at, None, None))
    if change.opened_at is not None:
        at, error_code = change.opened_at, change.last_error_code
        told.append(BreakerTold(change.id, change.tenant_id, at, None, change.failures, error_code))
    return told
