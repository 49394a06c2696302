"""Figures of CloudWatch: the latencies of the stages, and the counts that a bill is made of."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hooksaga.aws.emf import NAMESPACE
from hooksaga.runtime.metrics import Metric
from infra.proof.proof import Proof
from infra.proof.results import Result

STAGES = (("delivery", Metric.DELIVERY_LATENCY), ("orchestrator", Metric.END_TO_END_LATENCY))
PERCENTILES = ("p50", "p95")
PERIOD_SECONDS = 3600


def measure_stages(proof: Proof, result: Result) -> None:
    """Note the percentiles of each stage over the hour with the most deliveries."""
    for name, metric in STAGES:
        points = _points(
            proof,
            NAMESPACE,
            metric.value,
            {"service": f"{proof.place.prefix}-{name}"},
            ExtendedStatistics=list(PERCENTILES),
        )
        if not points:
            result.unavailable.append(f"The metric {metric.value}: CloudWatch has no values of it.")
            continue
        last = points[-1]["ExtendedStatistics"]
        shown = ", ".join(f"{part} {last[part]:.0f} ms" for part in PERCENTILES)
        result.figures[f"{metric.value} of {name}"] = shown


def total(proof: Proof, namespace: str, metric: str, dimensions: dict[str, str]) -> float | None:
    """Return the sum of a metric over the run; None if CloudWatch has no values of it."""
    points = _points(proof, namespace, metric, dimensions, Statistics=["Sum"])
    return sum(point["Sum"] for point in points) if points else None


def _points(
    proof: Proof, namespace: str, metric: str, dimensions: dict[str, str], **wanted: Any
) -> list[dict[str, Any]]:
    started = datetime.fromtimestamp(proof.state["started"], UTC)
    found = proof.account.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=started,
        EndTime=datetime.now(UTC) + timedelta(minutes=1),
        Period=PERIOD_SECONDS,
        **wanted,
    )
    return sorted(found["Datapoints"], key=lambda point: point["Timestamp"])
