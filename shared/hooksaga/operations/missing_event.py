"""The error for an event that is not there: it may have been deleted by retention."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_row
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import time_of_id
from hooksaga.core.models import rfc3339


@dataclass(frozen=True, slots=True)
class _Horizon:
    event_horizon: datetime | None


async def missing_event(connection: Connection, webhook_id: UUID) -> NotFound:
    """Return NotFound `event_not_found`. Its detail names the retention horizon when the id is as old as that."""
    detail = f"there is no event evt_{webhook_id.hex}"
    row = await fetch_row(connection, load_queries("inspect")["event_horizon"], {}, _Horizon)
    horizon, made_at = row.event_horizon if row else None, time_of_id(webhook_id)
    if horizon is not None and (made_at is None or made_at < horizon):
        detail = f"{detail}; events accepted before {rfc3339(horizon)} may have been deleted by retention"
    return NotFound("event_not_found", detail)
