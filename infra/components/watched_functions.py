"""Alarms of the functions: errors, throttling, missing ticks."""

from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.components.alarms import FIVE_MINUTES, Alarms, Limit
from infra.components.function import LeastFunction
from infra.components.functions import DESIGNS


def watch_functions(alarms: Alarms, functions: Mapping[str, LeastFunction]) -> list[cloudwatch.IWidget]:
    for name, function in functions.items():
        errors = function.function.metric_errors(period=FIVE_MINUTES)
        alarms.add("function-errors", name, errors, Limit(3))
        if DESIGNS[name].answers_http:
            throttles = function.function.metric_throttles(period=FIVE_MINUTES)
            alarms.add("function-throttled", name, throttles, Limit(1, periods=2))
        if DESIGNS[name].ticks:
            runs = function.function.metric_invocations(period=FIVE_MINUTES)
            alarms.add("ticks-missing", name, runs, Limit(3, periods=2, below=True, alarm_when_missing=True))
    return [_runs(functions), _durations(functions)]


def _runs(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    runs = [function.function.metric_invocations() for function in functions.values()]
    errors = [function.function.metric_errors() for function in functions.values()]
    return cloudwatch.GraphWidget(title="Runs, and errors", left=runs, right=errors, width=12)


def _durations(functions: Mapping[str, LeastFunction]) -> cloudwatch.GraphWidget:
    durations = [function.function.metric_duration(statistic="p99") for function in functions.values()]
    return cloudwatch.GraphWidget(title="Duration, 99th percentile", left=durations, width=12)
