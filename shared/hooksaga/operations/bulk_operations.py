"""Bulk operations: requeue many dead letters, resend many ended deliveries, or send old events to one subscription.

All state is in the rows, and a step is one statement (see sql/functions/step_bulk_operation.sql): any process that
takes the next step continues where the last one ended, on time by the database's clock. Each subscription has a lane.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hooksaga.adapters.database import Connection, Params, fetch_found, fetch_one, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.bulk import BulkKind, BulkStatus
from hooksaga.core.errors import Conflict, InvalidInput, NotFound
from hooksaga.core.models import rfc3339
from hooksaga.core.requeue_models import NewBulkOperation
from hooksaga.operations.requester import Requester

MAX_LANES_SHOWN = 100


@dataclass(frozen=True, slots=True)
class BulkLane:
    """Progress of an operation for one subscription, and the outcomes of its deliveries, as in BulkOperation."""

    subscription_id: int
    matched: int
    done: int
    skipped: int
    delivered: int
    failed: int
    under_way: int
    retrying: int
    finished: bool


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """One operation. done: sagas started. skipped: requeued by another caller, or without an active subscription.

    Of the sagas started: delivered, failed (dead-lettered), or under_way; retrying of these wait for a retry after a
    failure. stop_reason: why it stopped by itself; None if it did not.
    """

    id: int
    kind: str
    status: str
    tenant_id: str | None
    filter: dict[str, Any]
    rate_per_second: float
    reason: str
    created_by: str
    created_by_key_id: int | None
    matched: int
    done: int
    skipped: int
    delivered: int
    failed: int
    under_way: int
    retrying: int
    stop_reason: str | None
    last_step_at: datetime | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    lanes: list[BulkLane] = field(default_factory=list[BulkLane])


@dataclass(frozen=True, slots=True)
class BulkCount:
    """Result of a dry run: number of rows and of subscriptions."""

    matched: int
    subscriptions: int


@dataclass(frozen=True, slots=True)
class _StartedRow:
    id: int
    created: bool


@dataclass(frozen=True, slots=True)
class _BackfillFacts:
    tenant_id: str
    event_types: list[str]
    takes: bool
    now: datetime
    retention_horizon: datetime | None


async def start_bulk_operation(
    connection: Connection, wanted: NewBulkOperation, caller: Requester
) -> tuple[BulkOperation, bool]:
    """Start an operation, or return the equal one that has not ended; also returns whether this call started it.

    Raises the errors of `_selection` for a backfill.
    """
    tenant_id, chosen = await _selection(connection, wanted, caller)
    params = {
        "kind": wanted.kind,
        "tenant_id": tenant_id,
        "filter": json.dumps(chosen),
        "rate_per_second": wanted.rate_per_second,
        "reason": wanted.reason,
        "key_id": caller.key_id,
        "created_by": caller.name,
    }
    row = await fetch_one(connection, _query("start_bulk_operation"), params, _StartedRow)
    return await show_bulk_operation(connection, row.id, tenant_id=caller.tenant_id), row.created


async def count_bulk_operation(
    connection: Connection, wanted: NewBulkOperation, caller: Requester
) -> BulkCount:
    """Count the rows that an operation would process now. Raises as `start_bulk_operation` does."""
    tenant_id, chosen = await _selection(connection, wanted, caller)
    params = {"kind": wanted.kind, "tenant_id": tenant_id, "filter": json.dumps(chosen)}
    return await fetch_one(connection, _query("count_bulk_operation"), params, BulkCount)


async def _selection(
    connection: Connection, wanted: NewBulkOperation, caller: Requester
) -> tuple[str | None, dict[str, Any]]:
    """Return the tenant and the filter in its stored form. Equal filters give equal texts.

    Raises for a backfill NotFound `subscription_not_found`, Conflict `subscription_inactive` or
    `before_retention_horizon`, or InvalidInput for a range that ends before it begins, or begins in the future.
    """
    given = wanted.filter.model_dump(exclude_none=True)
    chosen = {name: _kept(value) for name, value in given.items()}
    if wanted.kind != BulkKind.BACKFILL:
        return caller.tenant_id, chosen
    params = {"id": given["subscription_id"], "tenant_id": caller.tenant_id}
    missing = NotFound("subscription_not_found", "there is no such subscription")
    facts = await fetch_found(connection, _query("backfill_facts"), params, _BackfillFacts, missing)
    _check_backfill(facts, given)
    return facts.tenant_id, {**chosen, "event_types": facts.event_types}


def _kept(value: Any) -> Any:
    """Return a time in UTC, so that equal times give equal texts; times at the ends of the calendar stay unchanged."""
    if not isinstance(value, datetime):
        return value
    try:
        return rfc3339(value)
    except OverflowError:
        return value.isoformat()


def _check_backfill(facts: _BackfillFacts, wanted: Mapping[str, Any]) -> None:
    since: datetime = wanted["since"]
    if not facts.takes:
        raise Conflict("subscription_inactive", "the subscription is not active and verified")
    if since > facts.now:
        raise InvalidInput(
            "invalid_field", "filter.since: must not be in the future", field="filter.since", status=422
        )
    if wanted.get("until", datetime.max.replace(tzinfo=UTC)) <= since:
        raise InvalidInput(
            "invalid_field", "filter.until: must be later than since", field="filter.until", status=422
        )
    if facts.retention_horizon is not None and since < facts.retention_horizon:
        raise Conflict(
            "before_retention_horizon",
            f"deliveries of events before {rfc3339(facts.retention_horizon)} may have been deleted, so "
            "filter.since must not be earlier",
        )


async def move_bulk_operation(
    connection: Connection, operation_id: int, status: BulkStatus, *, tenant_id: str | None
) -> BulkOperation:
    """Pause, resume or stop an operation. If it already has that status, it is returned unchanged.

    Raises NotFound `bulk_operation_not_found`, or Conflict `bulk_operation_ended`.
    """
    params = {"id": operation_id, "tenant_id": tenant_id, "status": status.value}
    await connection.execute(_query("move_bulk_operation"), params)
    operation = await show_bulk_operation(connection, operation_id, tenant_id=tenant_id)
    if operation.status != status:
        raise Conflict("bulk_operation_ended", f"bulk operation {operation_id} is {operation.status}")
    return operation


async def pace_bulk_operation(
    connection: Connection, operation_id: int, rate_per_second: float | None, *, tenant_id: str | None
) -> BulkOperation:
    """Change the rate of an operation; None changes nothing. Raises as `move_bulk_operation` does."""
    params: Params = {"id": operation_id, "tenant_id": tenant_id, "rate_per_second": rate_per_second}
    await connection.execute(_query("pace_bulk_operation"), params)
    operation = await show_bulk_operation(connection, operation_id, tenant_id=tenant_id)
    if operation.finished_at is not None:
        raise Conflict("bulk_operation_ended", f"bulk operation {operation_id} is {operation.status}")
    return operation


async def list_bulk_operations(
    connection: Connection,
    *,
    tenant_id: str | None,
    status: BulkStatus | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[BulkOperation]:
    params = {"tenant_id": tenant_id, "status": status, "before_id": before_id, "limit": limit}
    return await fetch_rows(connection, _query("list_bulk_operations"), params, BulkOperation)


async def show_bulk_operation(
    connection: Connection, operation_id: int, *, tenant_id: str | None
) -> BulkOperation:
    """Return one operation with its lanes, at most MAX_LANES_SHOWN. Raises NotFound `bulk_operation_not_found`."""
    params = {"id": operation_id, "tenant_id": tenant_id}
    missing = NotFound("bulk_operation_not_found", f"there is no bulk operation {operation_id}")
    operation = await fetch_found(connection, _query("show_bulk_operation"), params, BulkOperation, missing)
    wanted = {"id": operation_id, "limit": MAX_LANES_SHOWN}
    operation.lanes.extend(await fetch_rows(connection, _query("lanes_of_bulk_operation"), wanted, BulkLane))
    return operation


def _query(name: str) -> Any:
    return load_queries("bulk_operations")[name]
