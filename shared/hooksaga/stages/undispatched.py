"""SQS mode: find waiting jobs without a message in a queue, and note which messages were sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.trace import correlation_id_of
from hooksaga.stages.start_plan import BATCH


@dataclass(frozen=True, slots=True)
class WaitingJob:
    job_id: int
    saga_id: int
    subscription_id: int
    slow: bool
    webhook_id: UUID
    traceparent: str | None

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


@dataclass(frozen=True, slots=True)
class _JobIdRow:
    id: int


async def find_undispatched_jobs(
    connection: Connection, *, redispatch_seconds: float, grace_seconds: float = 30, limit: int = BATCH
) -> list[WaitingJob]:
    """Find Pending jobs that were never sent to a queue, or were last sent redispatch_seconds ago (SQS mode).

    A job without a noted dispatch is skipped while younger than grace_seconds: its sender may still be sending it.
    """
    params = {"redispatch_seconds": redispatch_seconds, "grace_seconds": grace_seconds, "limit": limit}
    return await fetch_rows(
        connection, load_queries("orchestrate")["find_undispatched_jobs"], params, WaitingJob
    )


async def mark_dispatched(connection: Connection, job_ids: Sequence[int]) -> None:
    """Record that a message was sent for each job that still waits."""
    await fetch_rows(
        connection, load_queries("orchestrate")["mark_dispatched"], {"job_ids": list(job_ids)}, _JobIdRow
    )
