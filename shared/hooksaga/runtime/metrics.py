"""Metrics, and the interface of their sinks: EMF on AWS (aws/emf.py), OpenMetrics on one machine
(worker/open_metrics.py).

No dimension identifies a tenant, subscription or event: each value would be a separate time series.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from hooksaga.core.outcomes import ErrorClass


class Metric(StrEnum):
    """Names of the metrics; OpenMetrics uses its own spelling."""

    EVENTS_ACCEPTED = "EventsAccepted"
    PAYLOADS_MISMATCHED = "PayloadsMismatched"
    SAGAS_CREATED = "SagasCreated"
    JOBS_CLAIMED = "JobsClaimed"
    DELIVERY_SUCCEEDED = "DeliverySucceeded"
    DELIVERY_FAILED = "DeliveryFailed"
    DELIVERY_LATENCY = "DeliveryLatency"
    END_TO_END_LATENCY = "EndToEndLatency"
    SAGAS_DEAD_LETTERED = "SagasDeadLettered"
    LEASES_RESET = "LeasesReset"
    ENDPOINTS_DISABLED = "EndpointsDisabled"
    DEAD_TASK_EVENT_PUBLISH_FAILED = "DeadTaskEventPublishFailed"
    OUTBOX_AGE = "OutboxAge"
    OLDEST_DUE_SAGA_AGE = "OldestDueSagaAge"
    SUBSCRIPTIONS_PAUSED = "SubscriptionsPaused"
    SUBSCRIPTIONS_IN_RETRY_AFTER = "SubscriptionsInRetryAfter"
    BREAKERS_OPEN = "BreakersOpen"
    BREAKERS_OPEN_FOR_AN_HOUR = "BreakersOpenForAnHour"
    ROWS_PRUNED = "RowsPruned"
    RETENTION_BEHIND = "RetentionBehind"


LATENCIES = (Metric.DELIVERY_LATENCY, Metric.END_TO_END_LATENCY)
AGES = (Metric.OUTBOX_AGE, Metric.OLDEST_DUE_SAGA_AGE, Metric.RETENTION_BEHIND)
FLOW_STATES = (
    Metric.SUBSCRIPTIONS_PAUSED,
    Metric.SUBSCRIPTIONS_IN_RETRY_AFTER,
    Metric.BREAKERS_OPEN,
    Metric.BREAKERS_OPEN_FOR_AN_HOUR,
)


class Metrics(Protocol):
    """A sink. Called once per batch; does no I/O and never raises."""

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        """Add to a counter. error_class: only with DeliveryFailed."""
        ...

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        """Add single values: latencies in milliseconds, ages in seconds, numbers of subscriptions."""
        ...


class NotMeasured:
    """Discards all metrics, in processes that are not monitored."""

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        pass

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        pass
