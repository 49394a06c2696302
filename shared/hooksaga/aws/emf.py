"""Metrics in CloudWatch's embedded metric format: lines on standard output, written once per invocation.

The dimension `service` is the function's name, which starts with the deployment's name, so that two deployments in one
account stay separate. DeliveryFailed is written twice: in total, and by `error_class`.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import AGES, LATENCIES, Metric

NAMESPACE = "hooksaga"

MAX_VALUES = 99
"""Maximum values of one metric per line. CloudWatch accepts 100, and at the 100th the provider writes by itself."""


class EmfMetrics:
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
        """Write the collected metrics, if any, and clear them."""
        counts, failures, values = self._counts, self._failures, self._values
        self._counts, self._failures, self._values = Counter(), Counter(), defaultdict(list)
        gathered = {**{metric: [many] for metric, many in counts.items() if many}, **values}
        for start in range(0, max(map(len, gathered.values()), default=0), MAX_VALUES):
            part = {metric: several[start : start + MAX_VALUES] for metric, several in gathered.items()}
            self._write({}, part)
        for error_class, many in failures.items():
            self._write({"error_class": error_class.value}, {Metric.DELIVERY_FAILED: [many]})

    def _write(self, dimensions: Mapping[str, str], values: Mapping[Metric, Sequence[float]]) -> None:
        provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service=self._service)
        for name, value in dimensions.items():
            provider.add_dimension(name, value)
        for metric, several in values.items():
            for value in several:
                provider.add_metric(metric.value, _unit(metric), value)
        # The provider prints a line and its newline separately, and another process may write to the same file.
        line: Any = provider.serialize_metric_set()  # pyright: ignore[reportUnknownMemberType]
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


def _unit(metric: Metric) -> MetricUnit:
    if metric in LATENCIES:
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric in AGES else MetricUnit.Count
