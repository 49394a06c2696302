"""How many attempts a filter of the attempt log matches. Reads only."""

from dataclasses import asdict

from hooksaga.adapters.database import Connection, fetch_rows, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.attempts import Outcome
from hooksaga.core.counts import Count
from hooksaga.operations.attempt_log import (
    MAX_SCANNED,
    AttemptFilter,
    Position,
    between,
    driving_index,
    may_see_subscription,
    subscriptions_of_tenant,
)


async def count_attempts(connection: Connection, wanted: AttemptFilter) -> Count:
    """Count the attempts of `list_attempts`, among the newest MAX_SCANNED keys of the index that the list scans."""
    if not await may_see_subscription(connection, wanted):
        return Count(0)
    query, more = driving_index(wanted, await subscriptions_of_tenant(connection, wanted))
    params = {**more, **between(wanted, None), "limit": MAX_SCANNED}
    keys = await fetch_rows(connection, load_queries("attempt_log")[query], params, Position)
    at_least = len(keys) >= MAX_SCANNED
    if _is_decided_by(query, wanted) or not keys:
        return Count(len(keys), at_least=at_least)
    params = {**wanted.params(), "ids": [key.id for key in keys]}
    count = await fetch_value(connection, load_queries("attempt_log")["count_by_id"], params)
    return Count(count, at_least=at_least)


def _is_decided_by(query: str, wanted: AttemptFilter) -> bool:
    """Return whether each key that the query scans matches, so that no row needs to be read. Keys of failures are
    scanned only where no completed attempt can match."""
    given = {name for name, value in asdict(wanted).items() if value is not None}
    decided = _DECIDED[query] | {"finished_after", "finished_before"}
    return given <= (decided if wanted.outcome is Outcome.COMPLETED else decided | {"outcome"})


_DECIDED = {
    "scan_all": set[str](),
    "scan_subscription": {"subscription_id", "tenant_id"},
    "scan_failed_of_subscription": {"subscription_id", "tenant_id"},
    "scan_error_code": {"error_code"},
    "scan_failed_classes": {"status_class"},
    "scan_subscriptions": {"tenant_id"},
    "scan_failed_of_subscriptions": {"tenant_id"},
}
"""Fields of the filter that hold for each key of a scan."""
