"""Which recent events a filter matches, by the statement's own comparison, and why not the others. Reads only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_found, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound
from hooksaga.core.event_attributes import values_of
from hooksaga.core.filters import FailedCondition, compile_filter, failed_condition

SCANNED_PER_EVENT = 10
"""Events of all tenants that are read for each event to show."""


@dataclass(frozen=True, slots=True)
class ComparedEvent:
    webhook_id: UUID
    event_type: str
    created_at: datetime
    matches: bool
    failed_condition: FailedCondition | None


@dataclass(frozen=True, slots=True)
class Matching:
    """filter: the one that was compared; None matches all events."""

    filter: dict[str, Any] | None
    events: Sequence[ComparedEvent]


@dataclass(frozen=True, slots=True)
class _Subscription:
    tenant_id: str
    event_types: list[str]
    filter: str | None


@dataclass(frozen=True, slots=True)
class _Row:
    webhook_id: UUID
    event_type: str
    created_at: datetime
    attributes: str
    matches: bool


async def match_events(
    connection: Connection,
    subscription_id: int,
    *,
    tenant_id: str | None,
    wanted: dict[str, Any] | None = None,
    last: int,
) -> Matching:
    """Compare the last events of a subscription's types with `wanted`, or with its own filter.

    Raises NotFound `subscription_not_found`, also for another tenant's.
    """
    queries = load_queries("match_events")
    params = {"id": subscription_id, "tenant_id": tenant_id}
    missing = NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    found = await fetch_found(connection, queries["subscription_to_match"], params, _Subscription, missing)
    if wanted is None and found.filter is not None:
        wanted = json.loads(found.filter)
    search = {
        "tenant_id": found.tenant_id,
        "event_types": found.event_types,
        "filter_path": None if wanted is None else compile_filter(wanted),
        "last": last,
        "scanned": last * SCANNED_PER_EVENT,
    }
    rows = await fetch_rows(connection, queries["recent_events"], search, _Row)
    return Matching(wanted, [_compared(row, wanted) for row in rows])


def _compared(row: _Row, wanted: dict[str, Any] | None) -> ComparedEvent:
    failed = None if row.matches or wanted is None else failed_condition(wanted, values_of(row.attributes))
    return ComparedEvent(row.webhook_id, row.event_type, row.created_at, row.matches, failed)
