"""Health of an endpoint, and the events that a subscription missed while it was disabled. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_found, fetch_row
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound

MAX_MISSED = 10_000


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """Health of one endpoint, as far as attempts are counted. eligible: it receives events now."""

    subscription_id: int
    eligible: bool
    consecutive_failures: int
    first_failure_at: datetime | None
    last_failure_at: datetime | None
    last_success_at: datetime | None
    last_error_code: str | None
    disabled_at: datetime | None
    disabled_reason: str | None
    counted_until: datetime


@dataclass(frozen=True, slots=True)
class Missed:
    """Deliveries that a disabled subscription missed: dead letters since its attempts only failed, not requeued yet,
    and events accepted since it was disabled. at_least: there may be more than were read."""

    failing_since: datetime
    since: datetime
    dead_letters: int
    events: int
    at_least: bool


async def show_health(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> EndpointHealth:
    """Return the health of an endpoint. Raises NotFound `subscription_not_found`, also for another tenant's."""
    params = {"id": subscription_id, "tenant_id": tenant_id}
    missing = NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    query = load_queries("subscription_health")["show_health"]
    return await fetch_found(connection, query, params, EndpointHealth, missing)


async def read_missed(
    connection: Connection, subscription_id: int, *, tenant_id: str | None, most: int = MAX_MISSED
) -> Missed | None:
    """Count what a subscription has missed that the monitor disabled or somebody switched off; None for any other.
    Reads at most `most` rows of each kind."""
    params = {"id": subscription_id, "tenant_id": tenant_id, "most": most}
    return await fetch_row(connection, load_queries("subscription_health")["read_missed"], params, Missed)
