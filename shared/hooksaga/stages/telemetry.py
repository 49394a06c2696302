"""Log lines and metrics of the stages, written per batch."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from hooksaga.core.errors import RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.outcomes import error_class_of
from hooksaga.core.saga import JobStatus, SagaStatus
from hooksaga.core.trace import span_id_of
from hooksaga.runtime.log_lines import (
    AttemptLine,
    Entry,
    MismatchLine,
    MoveLine,
    RefusedLine,
    ResetLine,
    RoutedLine,
    write_lines,
)
from hooksaga.runtime.metrics import Metric
from hooksaga.runtime.telemetry import count, logger, observe
from hooksaga.stages.clean_leases import LeaseReset
from hooksaga.stages.route_events import Routed, RoutedEvent
from hooksaga.stages.saga_rows import SagaMoved

if TYPE_CHECKING:  # a function that delivers nothing need not load the HTTP client
    from hooksaga.stages.accept_events import AcceptedEvent
    from hooksaga.stages.job_rows import AttemptResult, ClaimedJob


def note_accepted(events: "Sequence[AcceptedEvent]") -> None:
    """Count new events, and log one line for each whose payload does not match its schema."""
    count(Metric.EVENTS_ACCEPTED, len(events))
    warned = [event for event in events if event.warning is not None]
    if warned:
        count(Metric.PAYLOADS_MISMATCHED, len(warned))
        write_lines(logger, map(_mismatch_entry, warned))


def _mismatch_entry(event: "AcceptedEvent") -> Entry:
    assert event.warning is not None
    line = MismatchLine(
        event_id=event_id_text(event.webhook_id),
        correlation_id=event.traced.correlation_id,
        event_type=event.event_type,
        pointer=event.warning.pointer,
        reason=event.warning.rule,
    )
    return Entry(logging.WARNING, "payload mismatch", line)


def note_routed(routed: Routed) -> None:
    """Log one line per event, or part of one; its sagas have their own lines when they move."""
    count(Metric.SAGAS_CREATED, sum(len(event.saga_ids) for event in routed.events))
    write_lines(logger, map(_routed_entry, routed.events))


def _routed_entry(event: RoutedEvent) -> Entry:
    line = RoutedLine(
        event_id_text(event.webhook_id), event.correlation_id, len(event.saga_ids), round(event.delay_ms, 1)
    )
    return Entry(logging.INFO, "event routed" if event.whole else "event partly routed", line)


def note_outbox_age(seconds: float) -> None:
    """Observe the age of the first event in the outbox, before it is routed."""
    observe(Metric.OUTBOX_AGE, [seconds])


def note_claimed(jobs: "Sequence[ClaimedJob]") -> None:
    count(Metric.JOBS_CLAIMED, len(jobs))


def note_attempts(results: "Sequence[AttemptResult]", written: set[int], worker_id: str) -> None:
    """Log one line per attempt. A result that came too late says `lease_lost` and is not counted as a delivery."""
    recorded = [result for result in results if result.job.id in written]
    failures = Counter(
        error_class_of(result.outcome.error_code)
        for result in recorded
        if result.outcome.error_code is not None
    )
    count(Metric.DELIVERY_SUCCEEDED, len(recorded) - failures.total())
    for error_class, many in failures.items():
        count(Metric.DELIVERY_FAILED, many, error_class)
    observe(Metric.DELIVERY_LATENCY, [result.outcome.duration_ms for result in recorded])
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
    """Log one line per saga transition; a new dead letter is a warning."""
    dead = sum(move.status is SagaStatus.DEAD_LETTERED for move in moves)
    count(Metric.SAGAS_DEAD_LETTERED, dead)
    latencies = [move.end_to_end_ms for move in moves if move.end_to_end_ms is not None]
    observe(Metric.END_TO_END_LATENCY, latencies)
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
        end_to_end_ms=None if move.end_to_end_ms is None else round(move.end_to_end_ms, 1),
    )
    return Entry(
        logging.WARNING if move.status is SagaStatus.DEAD_LETTERED else logging.INFO, "saga moved", line
    )


def note_refused(rows: Iterable[RefusedRow]) -> None:
    """Log one line per row that the database rejected. The row stays unchanged until an operator acts."""
    write_lines(
        logger,
        (Entry(logging.ERROR, "row refused", RefusedLine(**asdict(row))) for row in dict.fromkeys(rows)),
    )


def note_oldest_due(seconds: float) -> None:
    """Observe for how long the oldest due saga has been due, before it is moved."""
    observe(Metric.OLDEST_DUE_SAGA_AGE, [seconds])


def note_unpublished(moves: Iterable[SagaMoved]) -> None:
    """Log and count dead letters whose DeadTaskEvent could not be sent. The dead letters themselves are stored."""
    for move in moves:
        count(Metric.DEAD_TASK_EVENT_PUBLISH_FAILED, 1)
        keys = {"saga_id": move.saga_id, "correlation_id": move.correlation_id}
        logger.error("DeadTaskEventPublishFailed", extra=keys)


def note_resets(resets: Sequence[LeaseReset]) -> None:
    """Log each lease reset as a warning: its worker died, or was too slow."""
    count(Metric.LEASES_RESET, len(resets))
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
