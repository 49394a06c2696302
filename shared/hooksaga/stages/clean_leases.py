"""Reset the leases of dead workers. Idempotent; never waits for a lock."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import RefusedRow
from hooksaga.core.saga import JobStatus
from hooksaga.stages.batches import OnRefusal, pass_refused

BATCH = 500


@dataclass(frozen=True, slots=True)
class LeaseReset:
    """A job whose lease expired: Pending again, or Failed with `lease_expired` after too many lost leases."""

    id: int
    saga_id: int
    subscription_id: int
    status: JobStatus
    worker_id: str | None
    claim_count: int
    lost_leases: int
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class _Expired:
    job_id: int
    saga_id: int
    subscription_id: int


async def clean_leases(
    connection: Connection,
    *,
    max_lost_leases: int,
    in_hand: Collection[int] = (),
    on_refusal: OnRefusal = lambda _row: None,
    limit: int = BATCH,
) -> list[LeaseReset]:
    """Reset one batch of expired leases, oldest first. Call again while it returns a full batch.

    in_hand: jobs whose results the caller is about to write, even if late; they are skipped. A job whose reset the
    database rejects is reported to on_refusal and stays leased.
    """
    queries, expired = load_queries("clean_leases"), {"in_hand": list(in_hand), "limit": limit}

    async def reset(job_ids: Sequence[int] | None) -> list[LeaseReset]:
        params = {**expired, "max_lost_leases": max_lost_leases, "job_ids": job_ids and list(job_ids)}
        return await fetch_rows(connection, queries["reset_expired_leases"], params, LeaseReset)

    async def look() -> dict[int, RefusedRow]:
        rows = await fetch_rows(connection, queries["expired_leases"], expired, _Expired)
        return {row.job_id: RefusedRow(**asdict(row)) for row in rows}

    return await pass_refused(reset, look, on_refusal)


@dataclass(frozen=True, slots=True)
class _Holder:
    worker_id: str


MAX_HOLDERS_READ = 10_000


async def lease_holders(connection: Connection, *, but_for: str) -> list[str]:
    """Return the workers that hold leases now, except one. A worker holds an expired lease until it is reset."""
    params = {"but_for": but_for, "limit": MAX_HOLDERS_READ}
    rows = await fetch_rows(connection, load_queries("clean_leases")["lease_holders"], params, _Holder)
    return [row.worker_id for row in rows]


async def give_back_leases(
    connection: Connection, *, worker_ids: Collection[str], max_lost_leases: int, limit: int = BATCH
) -> list[LeaseReset]:
    """Reset one batch of the leases of workers that are known to have ended. Each reset counts as one lost lease.

    Statements of such a worker that are still running are fenced: a result must match the lease's worker and claim.
    """
    params = {"worker_ids": list(worker_ids), "max_lost_leases": max_lost_leases, "limit": limit}
    return await fetch_rows(connection, load_queries("clean_leases")["give_back_leases"], params, LeaseReset)
