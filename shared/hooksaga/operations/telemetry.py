"""Log lines and metrics of the operations."""

from collections.abc import Iterable

from hooksaga.core.bulk import BulkStatus
from hooksaga.core.endpoint_health import DisabledReason, EarlyWarning
from hooksaga.core.models import rfc3339
from hooksaga.operations.breaker_events import BreakerTold
from hooksaga.operations.bulk_steps import BulkStep
from hooksaga.operations.erasures import ErasureStep
from hooksaga.operations.observe import FlowGauges
from hooksaga.operations.prune import Lag, Pruned
from hooksaga.operations.requeue import Requeued
from hooksaga.operations.resend import Resent
from hooksaga.operations.watch_endpoints import Watched
from hooksaga.runtime.metrics import Metric
from hooksaga.runtime.telemetry import count, logger, observe


def note_requeued(answers: Iterable[Requeued]) -> None:
    count(Metric.SAGAS_CREATED, sum(answer.created for answer in answers))


def note_resent(answer: Resent) -> None:
    count(Metric.SAGAS_CREATED, int(answer.created))


def note_bulk_step(step: BulkStep) -> None:
    """Log one line per step that started sagas or ended its operation. A step also stops one whose deliveries fail."""
    count(Metric.SAGAS_CREATED, len(step.saga_ids))
    if step.operation_id is not None and (step.saga_ids or step.status != BulkStatus.RUNNING):
        keys = {"bulk_operation_id": step.operation_id, "status": step.status, "sagas": len(step.saga_ids)}
        if step.status == BulkStatus.STOPPED:
            logger.warning("bulk operation stopped: nearly all of its deliveries fail", extra=keys)
        else:
            logger.info("bulk operation stepped", extra=keys)


def note_verification_failed(subscription_id: int, error_code: str | None) -> None:
    """Log the reason for operators. error_code None: the endpoint answered 2xx, but not with the challenge alone."""
    keys = {"subscription_id": subscription_id, "error_code": error_code}
    logger.warning("verification failed", extra=keys)


def note_flow_gauges(gauges: FlowGauges) -> None:
    """Observe how many subscriptions wait, and why."""
    observe(Metric.SUBSCRIPTIONS_PAUSED, [gauges.paused])
    observe(Metric.SUBSCRIPTIONS_IN_RETRY_AFTER, [gauges.retry_after])
    observe(Metric.BREAKERS_OPEN, [gauges.breaker_open])
    observe(Metric.BREAKERS_OPEN_FOR_AN_HOUR, [gauges.breaker_open_for_an_hour])


def note_lag(lags: Iterable[Lag]) -> None:
    """Observe how far retention is behind, of all kinds the farthest; nothing when no kind has an age."""
    behind = [lag.behind_seconds for lag in lags]
    observe(Metric.RETENTION_BEHIND, [max(behind)] if behind else [])


def note_pruned(done: Pruned) -> None:
    """Log one line per batch that deleted anything."""
    count(Metric.ROWS_PRUNED, done.rows)
    if done.rows:
        logger.info("old rows deleted", extra={name: many for name, many in done.counts().items() if many})


def note_erased(step: ErasureStep) -> None:
    """Log one line per step of an erasure. It names no event: only the erasure's row says what it is about."""
    if step.erasure_id is not None:
        counts = {"events": step.events, "ended": step.ended, "skipped": step.skipped}
        logger.info("erasure stepped", extra={"erasure_id": step.erasure_id, "status": step.status, **counts})


def note_watched(watched: Watched) -> None:
    """Log one line per verdict: an endpoint is failing, or its subscription was disabled; per endpoint that works
    again; and per circuit breaker that has opened or closed."""
    for told in watched.breakers:
        _note_breaker(told)
    for one in watched.recovered:
        keys = {"subscription_id": one.id, "tenant_id": one.tenant_id}
        since = {"failing_since": rfc3339(one.failing_since), "recovered_at": rfc3339(one.recovered_at)}
        logger.info("endpoint recovered", extra={**keys, **since})
    disabled = sum(isinstance(verdict.what, DisabledReason) for verdict in watched.verdicts)
    count(Metric.ENDPOINTS_DISABLED, disabled)
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


def _note_breaker(told: BreakerTold) -> None:
    keys = {
        "subscription_id": told.subscription_id,
        "tenant_id": told.tenant_id,
        "opened_at": rfc3339(told.opened_at),
    }
    if told.closed_at is not None:
        logger.info("circuit breaker closed", extra={**keys, "closed_at": rfc3339(told.closed_at)})
        return
    failures = {"consecutive_failures": told.consecutive_failures, "error_code": told.error_code}
    logger.warning("circuit breaker opened", extra={**keys, **failures})
