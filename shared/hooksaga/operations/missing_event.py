"""The error for an event that is not there: it may have been deleted by retention."""

from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import time_of_id
from hooksaga.core.models import rfc3339


async def missing_event(connection: Connection, webhook_id: UUID) -> NotFound:
    """Return NotFound `event_not_found`. Its detail names the retention horizon when the id is as old as that."""
    detail = f"there is no event evt_{webhook_id.hex}"
    horizon = await fetch_value(connection, load_queries("inspect")["event_horizon"], {})
    made_at = time_of_id(webhook_id)
    if horizon is not None and (made_at is None or made_at < horizon):
        detail = f"{detail}; events accepted before {rfc3339(horizon)} may have been deleted by retention"
    return NotFound("event_not_found", detail)
