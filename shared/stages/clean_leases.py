"""Gives back what dead workers held (r02 §2.4). Idempotent, and never waiting for a lock."""

from dataclasses import dataclass
from datetime import datetime

from shared.adapters.database import Connection, fetch_rows
from shared.adapters.queries import load_queries
from shared.core.saga import JobStatus

BATCH = 500


@dataclass(frozen=True, slots=True)
class LeaseReset:
    """A job whose lease was over: Pending again, or Failed with `lease_expired` once its claims are used up."""

    id: int
    saga_id: int
    subscription_id: int
    status: JobStatus
    worker_id: str | None
    claim_count: int
    lease_until: datetime


async def clean_leases(connection: Connection, *, max_claims: int, limit: int = BATCH) -> list[LeaseReset]:
    """Reset one batch of expired leases, the oldest first. Call again while a full batch comes back."""
    return await fetch_rows(
        connection,
        load_queries("clean_leases")["reset_expired_leases"],
        {"max_claims": max_claims, "limit": limit},
        LeaseReset,
    )
