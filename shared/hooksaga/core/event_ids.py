"""Public ids of events."""

from uuid import UUID


def event_id_text(webhook_id: UUID) -> str:
    """Return `evt_` and 32 hex digits, the public form of an event id."""
    return f"evt_{webhook_id.hex}"
