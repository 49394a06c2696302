"""Alarms of the way out: NAT gateways, or the NAT instance."""

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga.aws.deployment import Environment, Nat
from hooksaga_cdk.components.alarms import Alarms, Limit, metric_of

FAULTS = {"ErrorPortAllocation": Limit(1), "PacketsDropCount": Limit(100, periods=2)}


def watch_network(alarms: Alarms, env: Environment, nats: Sequence[str]) -> list[cloudwatch.IWidget]:
    if env.nat is Nat.INSTANCE:
        return _watch_instance(alarms, nats[0])
    faults = list[cloudwatch.IMetric]()
    for number, gateway in enumerate(nats, 1):
        for name, limit in FAULTS.items():
            metric = metric_of("AWS/NATGateway", name, {"NatGatewayId": gateway}, cloudwatch.Stats.SUM)
            alarms.add("nat-faults", f"{name} {number}", metric, limit)
            faults.append(metric)
    return [cloudwatch.GraphWidget(title="Faults of the NAT", left=faults, width=12)]


def _watch_instance(alarms: Alarms, instance: str) -> list[cloudwatch.IWidget]:
    dimensions = {"InstanceId": instance}
    failed = metric_of("AWS/EC2", "StatusCheckFailed", dimensions, cloudwatch.Stats.MAXIMUM)
    balance = metric_of("AWS/EC2", "CPUCreditBalance", dimensions, cloudwatch.Stats.MINIMUM)
    alarms.add("nat-faults", "instance", failed, Limit(1, periods=2, alarm_when_missing=True))
    return [cloudwatch.GraphWidget(title="NAT instance", left=[failed], right=[balance], width=12)]
