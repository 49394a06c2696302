"""Access to the internet and to the database."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from tests.infra.deployment import Deployment
from tests.infra.network_view import INTERNET, egress, group, ingress, routes_out

CALLERS = {"delivery", "subscriptions", "console"}


def test_only_callers_of_receivers_reach_the_internet_and_on_443(on_aws: Deployment) -> None:
    reach = {
        function: {port for target, port in egress(on_aws, function) if target == INTERNET}
        for function in on_aws.functions
    }
    assert {function for function, ports in reach.items() if ports} == CALLERS
    assert set.union(*reach.values()) == {443}


def test_the_others_have_no_route_out_at_all(on_aws: Deployment) -> None:
    assert {function for function in on_aws.functions if routes_out(on_aws, function)} == CALLERS


def test_a_function_reaches_the_database_and_the_endpoints_and_nothing_else(on_aws: Deployment) -> None:
    inside = {
        (group(on_aws, "Database"), 5432),
        (group(on_aws, "Proxy"), 5432),
        (group(on_aws, "Endpoints"), 443),
    }
    assert on_aws.functions
    for function in on_aws.functions:
        targets = {
            rule for rule in egress(on_aws, function) if rule[0] not in {INTERNET, "255.255.255.255/32"}
        }
        assert targets == inside, function


def test_a_group_without_a_rule_of_its_own_would_let_everything_out(on_aws: Deployment) -> None:
    for name in ("Inside", "Outbound", "Proxy", "Database", "Endpoints"):
        assert on_aws.resources[group(on_aws, name)]["Properties"]["SecurityGroupEgress"], name


def test_only_functions_and_the_proxy_reach_the_database(on_aws: Deployment) -> None:
    functions = {(group(on_aws, "Inside"), 5432), (group(on_aws, "Outbound"), 5432)}
    assert ingress(on_aws, group(on_aws, "Proxy")) == functions
    assert ingress(on_aws, group(on_aws, "Database")) == functions | {(group(on_aws, "Proxy"), 5432)}


def test_the_database_has_no_public_address(on_aws: Deployment) -> None:
    (database,) = on_aws.of_type("AWS::RDS::DBInstance").values()
    assert database["Properties"]["PubliclyAccessible"] is False
    groups = [on_aws.text(one).split(".")[0] for one in database["Properties"]["VPCSecurityGroups"]]
    assert groups == [group(on_aws, "Database")]


def test_the_nat_instance_has_memory_before_it_installs_and_does_not_give_up(dev: Deployment) -> None:
    steps = user_data(dev)
    installation = next(place for place, step in enumerate(steps) if "iptables-services" in step)
    assert steps[installation].startswith("until yum install ")
    assert "swapon /swapfile" in steps[:installation]
    for word in ("net.ipv4.ip_forward=1", "MASQUERADE", "-F FORWARD", "iptables save"):
        assert any(word in step for step in steps[installation + 1 :]), word


def user_data(deployment: Deployment) -> list[str]:
    """The commands of the NAT instance's first start."""
    (instance,) = deployment.of_type("AWS::EC2::Instance").values()
    return instance["Properties"]["UserData"]["Fn::Base64"].splitlines()


def test_deliveries_leave_by_one_fixed_address(dev: Deployment, prod: Deployment) -> None:
    (association,) = dev.of_type("AWS::EC2::EIPAssociation").values()
    (address,) = (name for name in dev.of_type("AWS::EC2::EIP") if "EgressAddress" in name)
    assert dev.text(association["Properties"]["AllocationId"]) == f"{address}.AllocationId"
    (gateway,) = prod.of_type("AWS::EC2::NatGateway").values()
    (address,) = prod.of_type("AWS::EC2::EIP")
    assert prod.text(gateway["Properties"]["AllocationId"]) == f"{address}.AllocationId"
    for deployment in (dev, prod):
        outputs = {
            name: one["Value"]
            for template in deployment.templates
            for name, one in template["Outputs"].items()
        }
        assert deployment.text(outputs["EgressAddress"]) in deployment.of_type("AWS::EC2::EIP")
