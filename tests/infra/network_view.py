"""The network of a deployment: whose packets may go where."""

from typing import Any

from tests.infra.deployment import Deployment

INTERNET = "0.0.0.0/0"


def egress(deployment: Deployment, function: str) -> set[tuple[str, int]]:
    """Where a function may open connections to: a range or a group, and the port."""
    group = deployment.text(deployment.functions[function]["VpcConfig"]["SecurityGroupIds"][0]).split(".")[0]
    embedded = deployment.resources[group]["Properties"].get("SecurityGroupEgress", [])
    separate = [
        one["Properties"]
        for one in deployment.of_type("AWS::EC2::SecurityGroupEgress").values()
        if deployment.text(one["Properties"]["GroupId"]).split(".")[0] == group
    ]
    return {(_target(deployment, rule), rule["FromPort"]) for rule in [*embedded, *separate]}


def ingress(deployment: Deployment, group: str) -> set[tuple[str, int]]:
    """Return the allowed sources and ports of a group."""
    embedded = deployment.resources[group]["Properties"].get("SecurityGroupIngress", [])
    separate = [
        one["Properties"]
        for one in deployment.of_type("AWS::EC2::SecurityGroupIngress").values()
        if deployment.text(one["Properties"]["GroupId"]).split(".")[0] == group
    ]
    return {(_source(deployment, rule), rule["FromPort"]) for rule in [*embedded, *separate]}


def group(deployment: Deployment, name: str) -> str:
    """The logical id of one of AccessRules' groups."""
    return next(
        group_id
        for group_id in deployment.of_type("AWS::EC2::SecurityGroup")
        if f"AccessRules{name}" in group_id
    )


def routes_out(deployment: Deployment, function: str) -> bool:
    """Whether any subnet of the function has a default route."""
    subnets = {
        deployment.text(one).split(".")[0] for one in deployment.functions[function]["VpcConfig"]["SubnetIds"]
    }
    tables = {
        deployment.text(one["Properties"]["RouteTableId"])
        for one in deployment.of_type("AWS::EC2::SubnetRouteTableAssociation").values()
        if deployment.text(one["Properties"]["SubnetId"]) in subnets
    }
    return any(
        one["Properties"].get("DestinationCidrBlock") == INTERNET
        and deployment.text(one["Properties"]["RouteTableId"]) in tables
        for one in deployment.of_type("AWS::EC2::Route").values()
    )


def _target(deployment: Deployment, rule: dict[str, Any]) -> str:
    return _peer(deployment, rule, "DestinationSecurityGroupId")


def _source(deployment: Deployment, rule: dict[str, Any]) -> str:
    return _peer(deployment, rule, "SourceSecurityGroupId")


def _peer(deployment: Deployment, rule: dict[str, Any], field: str) -> str:
    return rule["CidrIp"] if "CidrIp" in rule else deployment.text(rule[field]).split(".")[0]
