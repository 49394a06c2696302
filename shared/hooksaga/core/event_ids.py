"""Public ids of events."""

from datetime import UTC, datetime
from uuid import UUID


def event_id_text(webhook_id: UUID) -> str:
    """Return `evt_` and 32 hex digits, the public form of an event id."""
    return f"evt_{webhook_id.hex}"


def time_of_id(webhook_id: UUID) -> datetime | None:
    """Return when the id was made, to the millisecond, or None if it does not tell: a producer may choose its ids."""
    if webhook_id.version != 7:
        return None
    return datetime.fromtimestamp((webhook_id.int >> 80) / 1000, UTC)
