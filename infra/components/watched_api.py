"""Alarms of the API: server errors and slow answers."""

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.components.alarms import FIVE_MINUTES, Alarms, Limit
from infra.components.rest_api import RestApi

SLOW_MILLISECONDS = 5000


def watch_api(alarms: Alarms, api: RestApi) -> list[cloudwatch.IWidget]:
    faults = api.api.metric_server_error(period=FIVE_MINUTES, statistic=cloudwatch.Stats.SUM)
    latency = api.api.metric_latency(period=FIVE_MINUTES, statistic="p99")
    alarms.add("api-server-errors", "api", faults, Limit(5))
    alarms.add("api-slow", "api", latency, Limit(SLOW_MILLISECONDS, periods=3))
    return [
        cloudwatch.GraphWidget(title="Requests", left=[api.api.metric_count()], right=[faults], width=12),
        cloudwatch.GraphWidget(title="Latency, 99th percentile", left=[latency], width=12),
    ]
