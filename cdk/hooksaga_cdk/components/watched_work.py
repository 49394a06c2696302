"""Alarms on the metrics of functions (shared/hooksaga/aws/emf.py).

Their dimension is the function's name, which begins with the deployment's name, so deployments in one account are
separate.
"""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga.aws.emf import NAMESPACE
from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import FLOW_STATES, Metric
from hooksaga_cdk.components.alarms import FIVE_MINUTES, Alarms, Limit, metric_of
from hooksaga_cdk.components.function import LeastFunction

WATCHED = (
    ("leases-reset", "lease_cleaner", Metric.LEASES_RESET, cloudwatch.Stats.SUM, Limit(5)),
    ("endpoints-disabled", "health_monitor", Metric.ENDPOINTS_DISABLED, cloudwatch.Stats.SUM, Limit(1)),
    (
        "retention-behind",
        "retention",
        Metric.RETENTION_BEHIND,
        cloudwatch.Stats.MINIMUM,
        Limit(86_400, periods=12),
    ),
    ("breakers-open", "health_monitor", Metric.BREAKERS_OPEN_FOR_AN_HOUR, cloudwatch.Stats.MAXIMUM, Limit(1)),
    ("dead-letters", "orchestrator", Metric.SAGAS_DEAD_LETTERED, cloudwatch.Stats.SUM, Limit(20)),
    (
        "dead-task-not-published",
        "orchestrator",
        Metric.DEAD_TASK_EVENT_PUBLISH_FAILED,
        cloudwatch.Stats.SUM,
        Limit(1),
    ),
    ("events-not-routed", "router", Metric.OUTBOX_AGE, cloudwatch.Stats.MAXIMUM, Limit(300, periods=2)),
    ("deliveries-late", "orchestrator", Metric.END_TO_END_LATENCY, "p50", Limit(60_000, periods=3)),
    (
        "sagas-overdue",
        "orchestrator",
        Metric.OLDEST_DUE_SAGA_AGE,
        cloudwatch.Stats.MAXIMUM,
        Limit(300, periods=2),
    ),
)
"""Alarm, function, metric, statistic over five minutes, and limit."""


ATTEMPTS_FOR_A_SHARE = 100
"""Attempts in five minutes from which on a share says something about the system."""


def watch_work(alarms: Alarms, functions: Mapping[str, LeastFunction]) -> list[cloudwatch.IWidget]:
    for page, name, metric, statistic, limit in WATCHED:
        alarms.add(page, name, _metric(functions[name], metric, statistic), limit)
    if alarms.takes_expressions:
        alarms.add("deliveries-fail", "delivery", _failed_share(functions["delivery"]), Limit(50, periods=3))
    return [
        _flow(functions),
        _failures(functions["delivery"]),
        _latencies(functions),
        _ages(functions),
        _waiting(functions["health_monitor"]),
        _retention(functions["retention"]),
    ]


def _metric(function: LeastFunction, metric: Metric, statistic: str, **more: str) -> cloudwatch.Metric:
    return metric_of(NAMESPACE, metric.value, {"service": function.name, **more}, statistic)


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=12)


def _flow(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    shown = (
        ("ingest", Metric.EVENTS_ACCEPTED),
        ("intake", Metric.EVENTS_ACCEPTED),
        ("ingest", Metric.PAYLOADS_MISMATCHED),
        ("router", Metric.SAGAS_CREATED),
        ("delivery", Metric.JOBS_CLAIMED),
        ("delivery", Metric.DELIVERY_SUCCEEDED),
        ("orchestrator", Metric.SAGAS_DEAD_LETTERED),
    )
    sums = [_metric(functions[name], metric, cloudwatch.Stats.SUM) for name, metric in shown]
    return _graph("Events and deliveries", sums)


def _failures(delivery: LeastFunction) -> cloudwatch.GraphWidget:
    return _graph("Failed attempts, by class", list(_failed_by_class(delivery).values()))


def _failed_by_class(delivery: LeastFunction) -> dict[str, cloudwatch.IMetric]:
    return {
        kind.value: _metric(delivery, Metric.DELIVERY_FAILED, cloudwatch.Stats.SUM, error_class=kind.value)
        for kind in ErrorClass
    }


def _failed_share(delivery: LeastFunction) -> cloudwatch.MathExpression:
    """Return the percentage of failed attempts; 0 with fewer than ATTEMPTS_FOR_A_SHARE of them."""
    failed = {f"failed_{name}": metric for name, metric in _failed_by_class(delivery).items()}
    ok = {"ok": _metric(delivery, Metric.DELIVERY_SUCCEEDED, cloudwatch.Stats.SUM)}
    lost = " + ".join(f"FILL({name}, 0)" for name in failed)
    attempts = f"({lost} + FILL(ok, 0))"
    return cloudwatch.MathExpression(
        expression=f"IF({attempts} >= {ATTEMPTS_FOR_A_SHARE}, 100 * ({lost}) / {attempts}, 0)",
        using_metrics={**failed, **ok},
        label="failed attempts, percent",
        period=FIVE_MINUTES,
    )


def _latencies(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    shown = (("delivery", Metric.DELIVERY_LATENCY), ("orchestrator", Metric.END_TO_END_LATENCY))
    taken = [_metric(functions[name], metric, part) for name, metric in shown for part in ("p50", "p99")]
    return _graph("One POST, and acceptance to completion, milliseconds", taken)


def _ages(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    shown = (("router", Metric.OUTBOX_AGE), ("orchestrator", Metric.OLDEST_DUE_SAGA_AGE))
    ages = [_metric(functions[name], metric, cloudwatch.Stats.MAXIMUM) for name, metric in shown]
    return _graph("Age of the oldest waiting work, seconds", ages)


def _retention(retention: LeastFunction) -> cloudwatch.GraphWidget:
    behind = _metric(retention, Metric.RETENTION_BEHIND, cloudwatch.Stats.MAXIMUM)
    pruned = _metric(retention, Metric.ROWS_PRUNED, cloudwatch.Stats.SUM)
    return cloudwatch.GraphWidget(title="Retention", left=[behind], right=[pruned], width=12)


def _waiting(health_monitor: LeastFunction) -> cloudwatch.GraphWidget:
    counts = [_metric(health_monitor, metric, cloudwatch.Stats.MAXIMUM) for metric in FLOW_STATES]
    return _graph("Subscriptions whose deliveries wait, by reason", counts)
