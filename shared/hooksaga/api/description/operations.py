"""All operations of the API, and their groups."""

from hooksaga.api.description import (
    erasure_operations,
    event_types_operations,
    events_operations,
    recovery_operations,
    service_operations,
    subscriptions_operations,
)

OPERATIONS = (
    *events_operations.OPERATIONS,
    *subscriptions_operations.OPERATIONS,
    *event_types_operations.OPERATIONS,
    *recovery_operations.OPERATIONS,
    *erasure_operations.OPERATIONS,
    *service_operations.OPERATIONS,
)

GROUPS = {
    "events": "Accept events one by one, in batches or as CloudEvents, and trace each one to its last attempt.",
    "subscriptions": "Register endpoints for event types, and configure their retries.",
    "event-types": "The catalogue: what the events of a type say, which schema they match, and which attributes are "
    "extracted from them.",
    "dead-letters": "Deliveries that ended without success. Each keeps its payload and can be requeued as a new saga.",
    "attempts": "The log of all attempts, with time, trigger and result.",
    "bulk-operations": "Requeue many dead letters, resend many deliveries, or backfill earlier events, in the "
    "background at a given rate. Operations survive crashes and restarts, and limit the load on each endpoint.",
    "erasures": "Remove everything that the producer sent, from one event or from all events of a tenant.",
    "portal-links": "Signed links to pages with one tenant's subscriptions and deliveries, for your own users.",
    "sagas": "A saga is the delivery of one event to one subscription.",
    "service": "Backlog, health and API description.",
}
"""A group may have no description."""
