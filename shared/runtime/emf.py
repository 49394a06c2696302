"""Metrics in CloudWatch's embedded metric format: lines on standard output, written once per invocation.

The dimension `service` is the function's name, which begins with the deployment's, so that two deployments in one
account stay apart. DeliveryFailed is there twice: in all, and by `error_class`.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from shared.core.outcomes import ErrorClass
from shared.runtime.metrics import AGES, LATENCIES, Metric

NAMESPACE = "hooksaga"


class EmfMetrics:
    """Gathers until `flush`."""

    def __init__(self, service: str | None = None) -> None:
        self._service = service or os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "hooksaga")
        self._counts: Counter[Metric] = Counter()
        self._failures: Counter[ErrorClass] = Counter()
        self._values: defaultdict[Metric, list[float]] = defaultdict(list)

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        self._counts[metric] += many
        if error_class is not None:
            self._failures[error_class] += many

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        self._values[metric] += values

    def flush(self) -> None:
        """Write what was gathered, and begin anew. Nothing gathered, nothing written."""
        counts, failures, values = self._counts, self._failures, self._values
        self._counts, self._failures, self._values = Counter(), Counter(), defaultdict(list)
        self._write({}, {**{metric: [many] for metric, many in counts.items() if many}, **values})
        for error_class, many in failures.items():
            self._write({"error_class": error_class.value}, {Metric.DELIVERY_FAILED: [many]})

    def _write(self, dimensions: Mapping[str, str], values: Mapping[Metric, Iterable[float]]) -> None:
        provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service=self._service)
        for name, value in dimensions.items():
            provider.add_dimension(name, value)
        for metric, several in values.items():
            for value in several:  # a hundred of one metric are written at once: CloudWatch takes no more
                provider.add_metric(metric.value, _unit(metric), value)
        if provider.metric_set:
            provider.flush_metrics()


def _unit(metric: Metric) -> MetricUnit:
    if metric in LATENCIES:
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric in AGES else MetricUnit.Count
