"""All operations of the API, and their groups."""

from hooksaga.api.description import (
    events_operations,
    recovery_operations,
    service_operations,
    subscriptions_operations,
)

OPERATIONS = (
    *events_operations.OPERATIONS,
    *subscriptions_operations.OPERATIONS,
    *recovery_operations.OPERATIONS,
    *service_operations.OPERATIONS,
)

GROUPS = {
    "events": "They come in one by one, in batches or as CloudEvents, and each can be followed to its last attempt.",
    "subscriptions": "Who gets which events, where, and how often a failed delivery is tried again.",
    "dead-letters": "Deliveries whose attempts ran out. Each keeps the payload and can be requeued as a new saga.",
    "attempts": "The log of every POST: when it was made, why, and what came of it.",
    "bulk-operations": "Requeues of many dead letters, and backfills of older events, which go on by themselves at a "
    "steady rate, through crashes and restarts, and never flood an endpoint.",
    "portal-links": "A signed link opens one tenant's own subscriptions and deliveries as pages, for your own users.",
    "sagas": "A saga is one event on its way to one subscription.",
    "service": "How the system does, and what describes it.",
}
"""A group without words is allowed."""
