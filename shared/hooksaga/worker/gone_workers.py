"""Reset the leases of killed processes of this host at once, without waiting for their expiry."""

from collections.abc import Sequence
from functools import partial

from hooksaga.adapters.database import Session
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import clean_leases
from hooksaga.stages.clean_leases import LeaseReset
from hooksaga.stages.telemetry import note_resets
from hooksaga.worker.worker_identity import is_gone

LOOK_SECONDS = 2.0
"""Time in which the end of a process is noticed, at most. Each poll reads the leases and asks the kernel."""


async def give_back_leases_of_gone_workers(
    session: Session, worker_id: str, max_lost_leases: int
) -> Sequence[LeaseReset]:
    """Reset the leases of ended workers and return the resets. worker_id: this process's own, which is skipped."""
    holders = await session.run(partial(clean_leases.lease_holders, but_for=worker_id))
    gone = [holder for holder in holders if is_gone(holder)]
    if not gone:
        return []
    logger.warning("workers gone", extra={"worker_ids": gone})
    resets = await session.run(
        partial(clean_leases.give_back_leases, worker_ids=gone, max_lost_leases=max_lost_leases)
    )
    note_resets(resets)
    return resets
