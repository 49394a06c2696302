"""Alarms of the functions: errors, throttling, missing ticks."""

from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga_cdk.components.alarms import FIVE_MINUTES, Alarms, Limit, metric_of
from hooksaga_cdk.components.function import LeastFunction
from hooksaga_cdk.components.functions import DESIGNS
from hooksaga_cdk.components.ticks import rule_name


def watch_functions(alarms: Alarms, functions: Mapping[str, LeastFunction]) -> list[cloudwatch.IWidget]:
    for name, function in functions.items():
        errors = function.function.metric_errors(period=FIVE_MINUTES)
        alarms.add("function-errors", name, errors, Limit(3))
        throttles = function.function.metric_throttles(period=FIVE_MINUTES)
        alarms.add("function-throttled", name, throttles, Limit(1, periods=2))
        if DESIGNS[name].ticks:
            ticks = _ticks(function)
            alarms.add("ticks-missing", name, ticks, Limit(3, periods=2, below=True, alarm_when_missing=True))
    return [_runs(functions), _durations(functions)]


def _ticks(function: LeastFunction) -> cloudwatch.Metric:
    """Return the number of times that the rule started the function: its own number contains messages and requests."""
    return metric_of("AWS/Events", "Invocations", {"RuleName": rule_name(function)}, cloudwatch.Stats.SUM)


def _runs(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    runs = [function.function.metric_invocations() for function in functions.values()]
    errors = [function.function.metric_errors() for function in functions.values()]
    return cloudwatch.GraphWidget(title="Runs, and errors", left=runs, right=errors, width=12)


def _durations(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    durations = [function.function.metric_duration(statistic="p99") for function in functions.values()]
    return cloudwatch.GraphWidget(title="Duration, 99th percentile", left=durations, width=12)
