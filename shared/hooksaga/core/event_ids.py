"""Public ids of events."""

from uuid import UUID


def event_id_text(webhook_id: UUID) -> str:
    """`evt_` and 32 hex digits: the only form of an event's id outside the database."""
    return f"evt_{webhook_id.hex}"
