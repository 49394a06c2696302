"""Steps of bulk operations: each starts the sagas of a short time ahead."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_row, fetch_rows, fetch_value, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.bulk import BulkStatus
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.trace import correlation_id_of

MAX_SAGAS = 500
MAX_LANES = 100
MAX_OPEN = 100
"""Maximum of a subscription's bulk sagas in progress or waiting for a retry; above it, its lane waits."""


@dataclass(frozen=True, slots=True)
class BulkStep:
    """Sagas that one step started, with the subscription of each and the seconds until it is due.

    operation_id is None when no operation is left.

    refused: the operation itself, when the database rejects its next saga; nothing was started then.
    """

    operation_id: int | None = None
    status: str = BulkStatus.RUNNING
    saga_ids: list[int] = field(default_factory=list[int])
    subscription_ids: list[int] = field(default_factory=list[int])
    delays: list[float] = field(default_factory=list[float])
    refused: list[RefusedRow] = field(default_factory=list[RefusedRow])


async def step_bulk_operation(
    connection: Connection,
    *,
    horizon_seconds: float,
    passed_by: frozenset[int] = frozenset(),
    max_open: int = MAX_OPEN,
) -> BulkStep:
    """Start the sagas of the next horizon_seconds for the longest-waiting operation that is not in passed_by."""
    params = {
        "passed_by": list(passed_by),
        "horizon_seconds": horizon_seconds,
        "max_lanes": MAX_LANES,
        "max_open": max_open,
    }
    for most in (MAX_SAGAS, 1):  # sagas before a rejected one are started one by one
        try:
            async with refusals():
                row = await fetch_row(
                    connection,
                    load_queries("bulk_operations")["step_bulk_operation"],
                    {**params, "max_sagas": most},
                    BulkStep,
                )
        except RowRefused as refused:
            reason = str(refused)
        else:
            return row or BulkStep()
    next_id = await fetch_value(connection, load_queries("bulk_operations")["next_bulk_operation"], params)
    if next_id is None:
        return BulkStep()
    return BulkStep(operation_id=next_id, refused=[RefusedRow(reason=reason, bulk_operation_id=next_id)])


@dataclass(frozen=True, slots=True)
class _TracedRow:
    id: int
    webhook_id: UUID
    traceparent: str | None


async def traces_of_sagas(connection: Connection, saga_ids: Sequence[int]) -> dict[int, str]:
    rows = await fetch_rows(
        connection,
        load_queries("bulk_operations")["traces_of_sagas"],
        {"saga_ids": list(saga_ids)},
        _TracedRow,
    )
    return {row.id: correlation_id_of(row.webhook_id, row.traceparent) for row in rows}
