"""Alarms of the API: server errors, slow answers, and requests that the firewall blocked."""

from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga_cdk.components.alarms import FIVE_MINUTES, Alarms, Limit
from hooksaga_cdk.components.rest_api import RestApi
from hooksaga_cdk.components.web_firewall import BAD_ADDRESSES, TOO_MANY_REQUESTS, WebFirewall

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


def watch_firewall(alarms: Alarms, firewall: WebFirewall) -> list[cloudwatch.IWidget]:
    """Tell of each producer that is blocked for its rate. Scanners are blocked for their reputation all the time, so
    only many such blocks are told."""
    limits = {TOO_MANY_REQUESTS: Limit(1), BAD_ADDRESSES: Limit(1000)}
    blocked = {rule: firewall.blocked(rule) for rule in limits}
    for rule, limit in limits.items():
        alarms.add("requests-blocked", rule, blocked[rule], limit)
    return [cloudwatch.GraphWidget(title="Blocked requests", left=list(blocked.values()), width=12)]
