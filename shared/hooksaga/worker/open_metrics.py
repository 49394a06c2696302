"""Counters of one process, and their text in the OpenMetrics format.

Counting costs a few additions per batch; everything else is computed per request.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from hooksaga.core.flow import FlowStatus
from hooksaga.core.outcomes import ErrorClass
from hooksaga.operations.observe import Gauges
from hooksaga.runtime.metrics import Metric

DELIVERY_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0)
"""Upper bounds: from nearby receivers to the longest timeout that a subscription may have."""

END_TO_END_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)
"""Upper bounds: from immediate delivery to several retries later."""

COUNTERS = {
    Metric.PAYLOADS_MISMATCHED: (
        "hooksaga_payloads_mismatched",
        "New events stored although their payload does not match the schema of their type.",
    ),
    Metric.EVENTS_ACCEPTED: ("hooksaga_events_accepted", "New events stored, without repeats."),
    Metric.SAGAS_CREATED: ("hooksaga_sagas_created", "Sagas created, by routing or by a requeue."),
    Metric.JOBS_CLAIMED: ("hooksaga_jobs_claimed", "Jobs claimed by a worker."),
    Metric.DELIVERY_SUCCEEDED: ("hooksaga_delivery_succeeded", "Attempts answered with 2xx."),
    Metric.DELIVERY_FAILED: ("hooksaga_delivery_failed", "Failed attempts by error class."),
    Metric.SAGAS_DEAD_LETTERED: ("hooksaga_sagas_dead_lettered", "Sagas that became dead letters."),
    Metric.ENDPOINTS_DISABLED: (
        "hooksaga_endpoints_disabled",
        "Subscriptions disabled by the health monitor.",
    ),
    Metric.ROWS_PRUNED: (
        "hooksaga_rows_pruned",
        "Rows that retention deleted, and payloads that it removed.",
    ),
    Metric.LEASES_RESET: (
        "hooksaga_leases_reset",
        "Leases lost before their worker wrote a result.",
    ),
}
"""Metric names by metric. DeadTaskEvents exist in SQS mode only."""


class OpenMetrics:
    """Counters since the start of the process."""

    def __init__(self) -> None:
        self._since = time.time()
        self._counts: Counter[Metric] = Counter()
        self._failures: Counter[ErrorClass] = Counter()
        self._latencies = {
            Metric.DELIVERY_LATENCY: _Histogram(DELIVERY_SECONDS),
            Metric.END_TO_END_LATENCY: _Histogram(END_TO_END_SECONDS),
        }

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        self._counts[metric] += many
        if error_class is not None:
            self._failures[error_class] += many

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        """Ignore gauges: they are read from the database when the page is shown."""
        if histogram := self._latencies.get(metric):
            histogram.add(values)

    def text(self, gauges: Gauges | None) -> bytes:
        """Return the page. Without gauges, only the counters are in it."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families([*self._counters(), *self._histograms(), *_gauge_families(gauges)]))
        return generate_latest(registry)

    def _counters(self) -> Iterator[Family]:
        for metric, (name, meaning) in COUNTERS.items():
            if metric is Metric.DELIVERY_FAILED:
                family = CounterMetricFamily(name, meaning, labels=["error_class"])
                for error_class in ErrorClass:
                    family.add_metric([error_class.value], self._failures[error_class], created=self._since)
            else:
                family = CounterMetricFamily(name, meaning)
                family.add_metric([], self._counts[metric], created=self._since)
            yield family

    def _histograms(self) -> Iterator[Family]:
        delivery, end_to_end = self._latencies.values()
        yield delivery.family(
            "hooksaga_delivery_latency_seconds",
            "Duration of one POST, from DNS lookup to the end of the response.",
        )
        yield end_to_end.family(
            "hooksaga_end_to_end_latency_seconds",
            "Time from an event's acceptance to the completion of a delivery, including retries, without requeues.",
        )


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._in_bucket = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, milliseconds: Sequence[float]) -> None:
        for value in milliseconds:
            self._in_bucket[bisect_left(self._bounds, value / 1000)] += 1
        self._sum += sum(milliseconds) / 1000

    def family(self, name: str, meaning: str) -> HistogramMetricFamily:
        family = HistogramMetricFamily(name, meaning, unit="seconds")
        names, up_to = [*map(str, self._bounds), "+Inf"], 0
        buckets: list[tuple[str, float]] = []
        for bound, many in zip(names, self._in_bucket, strict=True):
            up_to += many
            buckets.append((bound, up_to))
        family.add_metric([], buckets, self._sum)
        return family


def _gauge_families(gauges: Gauges | None) -> Iterator[Family]:
    if gauges is None:
        return
    for name, meaning, unit, value in (
        (
            "outbox_age_seconds",
            "Age of the oldest event in the outbox.",
            "seconds",
            gauges.outbox_age_seconds,
        ),
        (
            "oldest_due_saga_age_seconds",
            "Seconds since the oldest due saga became due.",
            "seconds",
            gauges.oldest_due_saga_age_seconds,
        ),
        (
            "retry_debt_sagas",
            "Sagas that wait for a retry.",
            "",
            gauges.retry_debt_sagas,
        ),
        ("in_flight_jobs", "Jobs leased by workers.", "", gauges.in_flight_jobs),
        (
            "retention_behind_seconds",
            "Age of the oldest rows that retention should have deleted by now.",
            "seconds",
            gauges.retention_behind_seconds,
        ),
        (
            "breakers_open_for_an_hour",
            "Subscriptions with waiting deliveries whose circuit breaker has been open for an hour.",
            "",
            gauges.breaker_open_for_an_hour,
        ),
    ):
        yield GaugeMetricFamily(f"hooksaga_{name}", meaning, value=value, unit=unit)
    waiting = GaugeMetricFamily(
        "hooksaga_waiting_subscriptions",
        "Subscriptions with waiting deliveries that may not start, by flow state.",
        labels=["state"],
    )
    waiting.add_metric([FlowStatus.PAUSED.value], gauges.paused)
    waiting.add_metric([FlowStatus.RETRY_AFTER.value], gauges.retry_after)
    waiting.add_metric([FlowStatus.BREAKER_OPEN.value], gauges.breaker_open)
    yield waiting


class _Families(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Sequence[Family]:
        return self._families
