"""States of an event, from those of its deliveries."""

from enum import StrEnum


class EventStatus(StrEnum):
    """WAITING: it is not routed, or a delivery has not ended. DEAD: a dead letter of it was not requeued. An event can
    be both. DELIVERED: neither, and all deliveries have succeeded. NONE: it was routed to no subscription."""

    WAITING = "waiting"
    DEAD = "dead"
    DELIVERED = "delivered"
    NONE = "none"

    @property
    def is_recent_only(self) -> bool:
        """Return whether only events of the last 24 hours can be searched for it: retention may have deleted the
        deliveries of older ones."""
        return self in (EventStatus.DELIVERED, EventStatus.NONE)
