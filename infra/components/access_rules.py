"""Security groups. Only functions that call receivers may reach the internet."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

POSTGRES = ec2.Port.tcp(5432)
HTTPS = ec2.Port.tcp(443)
NOWHERE = ec2.Peer.ipv4("255.255.255.255/32")


class AccessRules(Construct):
    """`inside` and `outbound` are for functions without and with calls to receivers; the other groups for their
    targets."""

    def __init__(self, scope: Construct, name: str, vpc: ec2.IVpc, receiver_ports: Sequence[int]) -> None:
        super().__init__(scope, name)
        self.inside = self._group("Inside", vpc, "Functions that never call receivers")
        self.outbound = self._group("Outbound", vpc, "Functions that call receivers")
        self.database = self._group("Database", vpc, "PostgreSQL")
        self.proxy = self._group("Proxy", vpc, "RDS Proxy")
        self.endpoints = self._group("Endpoints", vpc, "SQS and Secrets Manager")
        for functions in (self.inside, self.outbound):
            for target, port in ((self.database, POSTGRES), (self.proxy, POSTGRES), (self.endpoints, HTTPS)):
                _allow(functions, target, port)
        _allow(self.proxy, self.database, POSTGRES)
        for group in (self.inside, self.outbound, self.proxy):
            # A rule of the group itself reliably replaces AWS's default rule, which allows all outgoing traffic.
            group.add_egress_rule(NOWHERE, ec2.Port.tcp(1), "Nothing but what the other rules say")
        self._allow_egress(receiver_ports)

    def _group(self, name: str, vpc: ec2.IVpc, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, name, vpc=vpc, description=description, allow_all_outbound=False)

    def _allow_egress(self, ports: Sequence[int]) -> None:
        for port in ports:
            self.outbound.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), "Receivers of webhooks")


def _allow(source: ec2.SecurityGroup, target: ec2.SecurityGroup, port: ec2.Port) -> None:
    source.add_egress_rule(target, port)
    target.add_ingress_rule(source, port)
