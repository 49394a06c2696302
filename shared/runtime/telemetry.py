"""Structured logs: one line per attempt, per routed batch, per saga transition (r02 §5.3, spec §13).

The names below are the only log keys for these things. Payloads, secrets, keys, and the path and query of callback
URLs are never logged. Control characters are escaped by JSON, so one entry is one line.
"""

import logging
import os
import sys
from collections.abc import Iterable

from aws_lambda_powertools import Logger

from shared.core.bulk import BulkStatus
from shared.core.saga import JobStatus, SagaStatus
from shared.stages.bulk_operations import BulkStep
from shared.stages.clean_leases import LeaseReset
from shared.stages.deliver import AttemptResult, event_id_text
from shared.stages.orchestrate import SagaMoved
from shared.stages.route_events import Routed

logger = Logger(
    service="hooksaga",
    level=os.environ.get("HOOKSAGA_LOG_LEVEL", "INFO"),
    stream=sys.stderr,
    utc=True,
)


def log_routed(routed: Routed) -> None:
    """One line per batch; the sagas have their own lines when they move."""
    logger.info("events routed", extra={"events": len(routed.event_ids), "sagas": len(routed.saga_ids)})


def log_attempts(results: Iterable[AttemptResult], written: set[int], worker_id: str) -> None:
    """One canonical line per attempt, with every decision in it. A result that came too late says `lease_lost`."""
    if logger.log_level > logging.INFO:
        return
    for result in results:
        _log_attempt(result, result.job.id in written, worker_id)


def _log_attempt(result: AttemptResult, recorded: bool, worker_id: str) -> None:
    job, outcome = result.job, result.outcome
    say = logger.info if recorded and result.status is JobStatus.COMPLETED else logger.warning
    say(
        "attempt" if recorded else "lease_lost",
        extra={
            "job_id": job.id,
            "saga_id": job.saga_id,
            "event_id": event_id_text(job.webhook_id),
            "subscription_id": job.subscription_id,
            "attempt": job.attempt_number,
            "claim": job.claim_count,
            "status": result.status.value,
            "response_status": outcome.response_status,
            "error_code": outcome.error_code,
            "duration_ms": outcome.duration_ms,
            "resolved_ip": outcome.resolved_ip,
            "lease_expiration": job.lease_until.isoformat(),
            "worker_id": worker_id,
        },
    )


def log_moves(moves: Iterable[SagaMoved]) -> None:
    """One line per saga transition; a new dead letter is a warning."""
    for move in moves:
        say = logger.warning if move.status is SagaStatus.DEAD_LETTERED else logger.debug
        say(
            "saga moved",
            extra={
                "saga_id": move.saga_id,
                "event_id": event_id_text(move.webhook_id),
                "subscription_id": move.subscription_id,
                "job_id": move.job_id,
                "status": move.status.value,
                "attempt_count": move.attempt_count,
                "error_code": move.final_error_code,
                "dead_letter_id": move.dead_letter_id,
                "next_attempt_at": move.next_attempt_at.isoformat(),
            },
        )


def log_resets(resets: Iterable[LeaseReset]) -> None:
    """A reset is a warning: some worker died, or was too slow."""
    for reset in resets:
        logger.warning(
            "lease reset",
            extra={
                "job_id": reset.id,
                "saga_id": reset.saga_id,
                "status": reset.status,
                "worker_id": reset.worker_id,
                "claim": reset.claim_count,
                "lease_expiration": reset.lease_until.isoformat(),
            },
        )


def log_bulk_step(step: BulkStep) -> None:
    """One line per step that started something, or ended its operation."""
    if step.operation_id is not None and (step.saga_ids or step.status != BulkStatus.RUNNING):
        logger.info(
            "bulk operation stepped",
            extra={
                "bulk_operation_id": step.operation_id,
                "status": step.status,
                "sagas": len(step.saga_ids),
            },
        )
