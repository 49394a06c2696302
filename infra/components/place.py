"""Network placement of a function."""

from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2

from infra.components.access_rules import AccessRules
from infra.components.network import INSIDE, OUTBOUND


@dataclass(frozen=True, slots=True)
class Place:
    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    security_group: ec2.ISecurityGroup


@dataclass(frozen=True, slots=True)
class Places:
    vpc: ec2.IVpc
    rules: AccessRules

    def of(self, *, calls_receivers: bool) -> Place:
        """Return the place with internet access only for functions that call receivers."""
        if calls_receivers:
            return Place(self.vpc, OUTBOUND, self.rules.outbound)
        return Place(self.vpc, INSIDE, self.rules.inside)
