"""Access to the internet and to the database."""

from dataclasses import replace

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS
from tests.infra.conftest import changed_dev
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
    inside = {(group(on_aws, name), 5432) for name in databases(on_aws)}
    inside.add((group(on_aws, "Endpoints"), 443))
    assert on_aws.functions
    for function in on_aws.functions:
        targets = {
            rule for rule in egress(on_aws, function) if rule[0] not in {INTERNET, "255.255.255.255/32"}
        }
        assert targets == inside, function


def test_a_group_without_a_rule_of_its_own_would_let_everything_out(on_aws: Deployment) -> None:
    for name in ("Inside", "Outbound", "Endpoints", *databases(on_aws)):
        assert on_aws.resources[group(on_aws, name)]["Properties"]["SecurityGroupEgress"], name


def test_only_functions_and_the_proxy_reach_the_database(on_aws: Deployment) -> None:
    functions = {(group(on_aws, "Inside"), 5432), (group(on_aws, "Outbound"), 5432)}
    proxies = {(group(on_aws, name), 5432) for name in databases(on_aws) if name == "Proxy"}
    assert ingress(on_aws, group(on_aws, "Database")) == functions | proxies
    for proxy, _ in proxies:
        assert ingress(on_aws, proxy) == functions


def databases(deployment: Deployment) -> tuple[str, ...]:
    """The groups that functions reach with PostgreSQL's protocol."""
    return ("Database", "Proxy") if deployment.of_type("AWS::RDS::DBProxy") else ("Database",)


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


def test_deliveries_leave_by_fixed_addresses(dev: Deployment, prod: Deployment) -> None:
    (association,) = dev.of_type("AWS::EC2::EIPAssociation").values()
    (address,) = (name for name in dev.of_type("AWS::EC2::EIP") if "EgressAddress" in name)
    assert dev.text(association["Properties"]["AllocationId"]) == f"{address}.AllocationId"
    gateways = prod.of_type("AWS::EC2::NatGateway").values()
    used = {prod.text(one["Properties"]["AllocationId"]) for one in gateways}
    assert used == {f"{address}.AllocationId" for address in prod.of_type("AWS::EC2::EIP")}
    assert len(used) == 2
    for deployment in (dev, prod):
        outputs = {
            name: one["Value"]
            for template in deployment.templates
            for name, one in template["Outputs"].items()
        }
        told = deployment.text(outputs["HooksEgressAddress"]).split(",")
        assert set(told) <= set(deployment.of_type("AWS::EC2::EIP"))
        assert len(told) == max(1, len(deployment.of_type("AWS::EC2::NatGateway")))


@pytest.mark.parametrize(
    ("service", "action"), [("sqs", "sqs:SendMessage"), ("secretsmanager", "secretsmanager:GetSecretValue")]
)
def test_an_endpoint_lets_this_accounts_requests_to_itself_through(
    on_aws: Deployment, service: str, action: str
) -> None:
    (policy,) = (
        one["Properties"]["PolicyDocument"]["Statement"]
        for one in on_aws.of_type("AWS::EC2::VPCEndpoint").values()
        if service in on_aws.text(one["Properties"]["ServiceName"])
    )
    (statement,) = policy
    assert (statement["Effect"], statement["Action"]) == ("Allow", action)
    equal = {name: on_aws.text(one) for name, one in statement["Condition"]["StringEquals"].items()}
    assert equal == dict.fromkeys(("aws:PrincipalAccount", "aws:ResourceAccount"), "AWS::AccountId")


def test_an_endpoint_allows_all_that_functions_do_there(on_aws: Deployment) -> None:
    """Their rights on queues to send to and on secrets; what reads a queue is Lambda itself."""
    reading = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}
    attributes = {"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "secretsmanager:DescribeSecret"}
    allowed = set[str]()
    for who, statement in on_aws.statements():
        if who in on_aws.functions:
            actions = statement["Action"]
            allowed.update(actions if isinstance(actions, list) else [actions])
    used = {one for one in allowed if one.startswith(("sqs:", "secretsmanager:"))} - reading - attributes
    assert used == {"sqs:SendMessage", "secretsmanager:GetSecretValue"}


@pytest.fixture(scope="module")
def private_receivers(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    folder = tmp_path_factory.mktemp("private")
    (authorities := folder / "corporate.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    env = replace(
        ENVIRONMENTS["dev"],
        receiver_ports=(443, 8443),
        egress_allow=("10.0.0.0/8", "192.168.0.0/16"),
        ca_file=authorities,
    )
    deployment = changed_dev(folder / "out", env)
    assert list((folder / "out").glob("asset.*/receivers.pem"))
    return deployment


def test_receivers_of_ones_own_can_be_reached_and_trusted(private_receivers: Deployment) -> None:
    (layer,) = private_receivers.of_type("AWS::Lambda::LayerVersion")
    assert private_receivers.functions.keys() > CALLERS
    for function, properties in private_receivers.functions.items():
        ports = {port for target, port in egress(private_receivers, function) if target == INTERNET}
        variables = private_receivers.environment(function)
        layers = [private_receivers.text(one) for one in properties.get("Layers", [])]
        if function in CALLERS:
            assert (ports, layers) == ({443, 8443}, [layer])
            assert variables["HOOKSAGA_CA_FILE"] == "/opt/receivers.pem"
            assert variables["HOOKSAGA_EGRESS_ALLOW"] == "10.0.0.0/8,192.168.0.0/16"
        else:
            assert (ports, layers, variables.get("HOOKSAGA_CA_FILE")) == (set(), [], None)
