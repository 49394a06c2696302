"""What is told of the work: structured logs and metrics, a batch at a time (r02 §5.3, spec §13).

Payloads, secrets, keys, and the path and query of callback URLs are never told. Control characters are escaped by JSON,
so one entry is one line. The keys of the lines are in log_lines.py, the metrics' names in metrics.py.
"""

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from shared.core.bulk import BulkStatus
from shared.core.endpoint_health import DisabledReason, EarlyWarning
from shared.core.errors import RefusedRow
from shared.core.event_ids import event_id_text
from shared.core.outcomes import error_class_of
from shared.core.saga import JobStatus, SagaStatus
from shared.core.trace import span_id_of
from shared.runtime.log_lines import (
    AttemptLine,
    Entry,
    LineFormatter,
    MoveLine,
    RefusedLine,
    ResetLine,
    RoutedLine,
    write_lines,
)
from shared.runtime.metrics import Metric, Metrics, NotMeasured
from shared.stages.accept_events import AcceptedEvent
from shared.stages.bulk_operations import BulkStep
from shared.stages.clean_leases import LeaseReset
from shared.stages.orchestrate import SagaMoved
from shared.stages.requeue import Requeued
from shared.stages.route_events import Routed, RoutedEvent
from shared.stages.watch_endpoints import Watched

if TYPE_CHECKING:  # who delivers nothing need not load what delivers
    from shared.stages.deliver import AttemptResult, ClaimedJob

logger = Logger(
    service="hooksaga",
    level=os.environ.get("HOOKSAGA_LOG_LEVEL", "INFO"),
    stream=sys.stderr,
    logger_formatter=LineFormatter(utc=True),
)

_metrics: Metrics = NotMeasured()


def measure_with(metrics: Metrics) -> None:
    """From now on this process counts there: as it has one log, it has one count."""
    global _metrics
    _metrics = metrics


def note_accepted(events: Sequence[AcceptedEvent]) -> None:
    """New events, not repeats."""
    _metrics.count(Metric.EVENTS_ACCEPTED, len(events))


def note_routed(routed: Routed) -> None:
    """One line per event, or part of one; its sagas have their own lines when they move."""
    _metrics.count(Metric.SAGAS_CREATED, sum(len(event.saga_ids) for event in routed.events))
    write_lines(logger, map(_routed_entry, routed.events))


def _routed_entry(event: RoutedEvent) -> Entry:
    line = RoutedLine(
        event_id_text(event.webhook_id), event.correlation_id, len(event.saga_ids), round(event.delay_ms, 1)
    )
    return Entry(logging.INFO, "event routed" if event.whole else "event partly routed", line)


def note_outbox_age(seconds: float) -> None:
    """Of the first event in the outbox, before it is routed."""
    _metrics.observe(Metric.OUTBOX_AGE, [seconds])


def note_claimed(jobs: "Sequence[ClaimedJob]") -> None:
    """Jobs that this worker has now."""
    _metrics.count(Metric.JOBS_CLAIMED, len(jobs))


def note_attempts(results: "Sequence[AttemptResult]", written: set[int], worker_id: str) -> None:
    """One line per attempt. A result that came too late says `lease_lost`, and is not counted as a delivery."""
    recorded = [result for result in results if result.job.id in written]
    failures = Counter(
        error_class_of(result.outcome.error_code)
        for result in recorded
        if result.outcome.error_code is not None
    )
    _metrics.count(Metric.DELIVERY_SUCCEEDED, len(recorded) - failures.total())
    for error_class, many in failures.items():
        _metrics.count(Metric.DELIVERY_FAILED, many, error_class)
    _metrics.observe(Metric.DELIVERY_LATENCY, [result.outcome.duration_ms for result in recorded])
    write_lines(logger, (_attempt_entry(result, result.job.id in written, worker_id) for result in results))


def _attempt_entry(result: "AttemptResult", recorded: bool, worker_id: str) -> Entry:
    job, outcome = result.job, result.outcome
    good = recorded and result.status is JobStatus.COMPLETED
    line = AttemptLine(
        job_id=job.id,
        saga_id=job.saga_id,
        event_id=event_id_text(job.webhook_id),
        subscription_id=job.subscription_id,
        correlation_id=job.correlation_id,
        span_id=span_id_of(job.id, job.claim_count),
        attempt=job.attempt_number,
        claim=job.claim_count,
        status=result.status.value,
        duration_ms=outcome.duration_ms,
        worker_id=worker_id,
        lease_expiration=job.lease_until,
        response_status=outcome.response_status,
        error_code=outcome.error_code,
        resolved_ip=outcome.resolved_ip,
        reconnected=outcome.reconnected,
    )
    return Entry(logging.INFO if good else logging.WARNING, "attempt" if recorded else "lease_lost", line)


def note_moves(moves: Sequence[SagaMoved]) -> None:
    """One line per saga transition; a new dead letter is a warning."""
    dead = sum(move.status is SagaStatus.DEAD_LETTERED for move in moves)
    _metrics.count(Metric.SAGAS_DEAD_LETTERED, dead)
    latencies = [move.end_to_end_ms for move in moves if move.end_to_end_ms is not None]
    _metrics.observe(Metric.END_TO_END_LATENCY, latencies)
    write_lines(logger, map(_move_entry, moves))


def _move_entry(move: SagaMoved) -> Entry:
    line = MoveLine(
        saga_id=move.saga_id,
        event_id=event_id_text(move.webhook_id),
        subscription_id=move.subscription_id,
        correlation_id=move.correlation_id,
        status=move.status.value,
        attempt_count=move.attempt_count,
        previous_status=move.previous_status.value if move.previous_status else None,
        job_id=move.job_id,
        error_code=move.final_error_code,
        dead_letter_id=move.dead_letter_id,
        next_attempt_at=move.next_attempt_at if move.status is SagaStatus.PENDING_RETRY else None,
        worker_id=move.worker_id,
        lease_expiration=move.lease_until,
        end_to_end_ms=None if move.end_to_end_ms is None else round(move.end_to_end_ms, 1),
    )
    return Entry(
        logging.WARNING if move.status is SagaStatus.DEAD_LETTERED else logging.INFO, "saga moved", line
    )


def note_refused(rows: Iterable[RefusedRow]) -> None:
    """One line per row that the database refused, and that stays as it is until somebody acts."""
    write_lines(
        logger,
        (Entry(logging.ERROR, "row refused", RefusedLine(**asdict(row))) for row in dict.fromkeys(rows)),
    )


def note_oldest_due(seconds: float) -> None:
    """How long the saga that is overdue the longest has been due, before it is moved."""
    _metrics.observe(Metric.OLDEST_DUE_SAGA_AGE, [seconds])


def note_requeued(answers: Iterable[Requeued]) -> None:
    """Sagas that a requeue has started just now."""
    _metrics.count(Metric.SAGAS_CREATED, sum(answer.created for answer in answers))


def note_unpublished(moves: Iterable[SagaMoved]) -> None:
    """Dead letters of which no DeadTaskEvent could be sent. The dead letters are there all the same."""
    for move in moves:
        _metrics.count(Metric.DEAD_TASK_EVENT_PUBLISH_FAILED, 1)
        keys = {"saga_id": move.saga_id, "correlation_id": move.correlation_id}
        logger.error("DeadTaskEventPublishFailed", extra=keys)


def note_resets(resets: Sequence[LeaseReset]) -> None:
    """A reset is a warning: some worker died, or was too slow."""
    _metrics.count(Metric.LEASES_RESET, len(resets))
    write_lines(logger, map(_reset_entry, resets))


def _reset_entry(reset: LeaseReset) -> Entry:
    line = ResetLine(
        job_id=reset.id,
        saga_id=reset.saga_id,
        subscription_id=reset.subscription_id,
        status=str(reset.status),
        claim=reset.claim_count,
        lease_expiration=reset.lease_until,
        worker_id=reset.worker_id,
        error_code="lease_expired" if reset.status == JobStatus.FAILED else None,
    )
    return Entry(logging.WARNING, "lease reset", line)


def note_bulk_step(step: BulkStep) -> None:
    """One line per step that started something, or ended its operation."""
    _metrics.count(Metric.SAGAS_CREATED, len(step.saga_ids))
    if step.operation_id is not None and (step.saga_ids or step.status != BulkStatus.RUNNING):
        keys = {"bulk_operation_id": step.operation_id, "status": step.status, "sagas": len(step.saga_ids)}
        logger.info("bulk operation stepped", extra=keys)


def note_verification_failed(subscription_id: int, error_code: str | None) -> None:
    """The reason, for operators. error_code None: the endpoint answered 2xx, and not with the challenge alone."""
    keys = {"subscription_id": subscription_id, "error_code": error_code}
    logger.warning("verification failed", extra=keys)


def note_watched(watched: Watched) -> None:
    """One line per verdict: an endpoint is failing, or its subscription was switched off."""
    disabled = sum(isinstance(verdict.what, DisabledReason) for verdict in watched.verdicts)
    _metrics.count(Metric.ENDPOINTS_DISABLED, disabled)
    for verdict in watched.verdicts:
        percent = verdict.what.percent if isinstance(verdict.what, EarlyWarning) else None
        logger.warning(
            "endpoint failing" if percent else "endpoint disabled",
            extra={
                "subscription_id": verdict.subscription_id,
                "tenant_id": verdict.tenant_id,
                "percent": percent,
                "reason": verdict.what.value if isinstance(verdict.what, DisabledReason) else None,
                "consecutive_failures": verdict.consecutive_failures,
                "error_code": verdict.error_code,
            },
        )


def note_migration_waits(wait: str) -> None:
    """Who holds a lock that a migration needs."""
    logger.warning("migration waits", extra={"reason": wait})
