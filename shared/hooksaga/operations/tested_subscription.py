"""What a test event needs to know of its subscription."""

from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_found
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound


@dataclass(frozen=True, slots=True)
class TestedSubscription:
    tenant_id: str
    event_types: list[str]
    takes: bool


async def subscription_to_test(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> TestedSubscription:
    """Raises NotFound `subscription_not_found`, also for another tenant's."""
    params = {"id": subscription_id, "tenant_id": tenant_id}
    query = load_queries("accept_events")["subscription_to_test"]
    missing = NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    return await fetch_found(connection, query, params, TestedSubscription, missing)
