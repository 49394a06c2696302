"""Network placement of a function."""

from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2

from hooksaga_cdk.components.access_rules import AccessRules


@dataclass(frozen=True, slots=True)
class Subnets:
    """Subnets of a VPC. `outbound`: with a route to receivers, for functions that call them. `inside`: for the other
    functions and the endpoints. `database`: for the database, in at least two zones."""

    outbound: ec2.SubnetSelection
    inside: ec2.SubnetSelection
    database: ec2.SubnetSelection


@dataclass(frozen=True, slots=True)
class Place:
    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    security_group: ec2.ISecurityGroup


@dataclass(frozen=True, slots=True)
class Places:
    vpc: ec2.IVpc
    subnets: Subnets
    rules: AccessRules

    def of(self, *, calls_receivers: bool) -> Place:
        """Return the place with internet access only for functions that call receivers."""
        if calls_receivers:
            return Place(self.vpc, self.subnets.outbound, self.rules.outbound)
        return Place(self.vpc, self.subnets.inside, self.rules.inside)
