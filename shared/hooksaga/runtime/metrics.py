"""Metrics, and the interface of their sinks.

On AWS that is EMF (aws/emf.py), on one machine OpenMetrics (worker/open_metrics.py). There is nothing that tells one
tenant, subscription or event from another: each combination of values would be a time series of its own.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from hooksaga.core.outcomes import ErrorClass


class Metric(StrEnum):
    """The names, the same everywhere; OpenMetrics spells them its own way."""

    EVENTS_ACCEPTED = "EventsAccepted"
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


LATENCIES = (Metric.DELIVERY_LATENCY, Metric.END_TO_END_LATENCY)
AGES = (Metric.OUTBOX_AGE, Metric.OLDEST_DUE_SAGA_AGE)


class Metrics(Protocol):
    """Called once per batch, with whatever the batch had. It does no I/O and never raises."""

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        """So many more. error_class is given with DeliveryFailed only."""
        ...

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        """Single values: latencies in milliseconds, ages in seconds."""
        ...


class NotMeasured:
    """For processes that nobody asks: commands, tests, benchmarks of a part."""

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        pass

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        pass
