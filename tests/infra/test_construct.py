"""The construct with what exists already: each case is synthesised, and checked by cfn-lint and cdk-nag."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template
from cdk_nag import AwsSolutionsChecks

from hooksaga.adapters.database import Role
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga_cdk import Domain, ExistingDatabase, Hooksaga, Subnets
from tests.infra.conftest import NO_BUNDLES
from tests.infra.deployment import Deployment
from tests.infra.network_view import group, ingress
from tests.infra.test_good_practice import NOT_OURS, findings

pytestmark = [pytest.mark.slow, pytest.mark.long]

ZONES_ARE_KNOWN = "W3010"
"""The CDK names the zones of a stack whose account and region are known."""

Define = Callable[[Stack], Any]

PLACE = Environment(account="123456789012", region="eu-central-1")
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!cluster-1-Ab12Cd"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-0000-0000-000000000000"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:pages"


def synthesise(folder: Path, define: Define) -> Deployment:
    """Synthesise a stack of a user, whose cdk.json has no flags of ours. Raises RuntimeError for what cdk-nag finds."""
    app = App(outdir=str(folder), context=NO_BUNDLES)
    define(Stack(app, "users", env=PLACE))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return Deployment.read(folder)


def existing_vpc(stack: Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-01234567",
        availability_zones=["eu-central-1a", "eu-central-1b"],
        vpc_cidr_block="10.0.0.0/16",
        private_subnet_ids=["subnet-0000000a", "subnet-0000000b"],
        isolated_subnet_ids=["subnet-1000000a", "subnet-1000000b"],
    )


def existing_database(stack: Stack, **changed: Any) -> ExistingDatabase:
    return ExistingDatabase(
        endpoint="shop.cluster-1.eu-central-1.rds.amazonaws.com",
        resource_id="cluster-ABC",
        secret=secretsmanager.Secret.from_secret_complete_arn(stack, "Secret", SECRET),
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0000000d"),
        port=5433,
        name="hooks",
        **changed,
    )


def in_existing_vpc(stack: Stack) -> None:
    Hooksaga(
        stack,
        "Hooks",
        vpc=existing_vpc(stack),
        endpoints=ec2.SecurityGroup.from_security_group_id(stack, "Endpoints", "sg-0000000e"),
        alarm_topic=sns.Topic.from_topic_arn(stack, "Topic", TOPIC),
        tags={"team": "orders"},
    )


def on_existing_database(stack: Stack) -> None:
    Hooksaga(stack, "Hooks", "prod", vpc=existing_vpc(stack), database=existing_database(stack))


def with_private_api(stack: Stack) -> None:
    Hooksaga(stack, "Hooks", "prod", private_api=True)


def with_key_and_boundary(stack: Stack) -> None:
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "Boundary", "boundary")
    Hooksaga(stack, "Hooks", "prod", encryption_key=key, permissions_boundary=boundary)


def two_of_them(stack: Stack) -> None:
    Hooksaga(stack, "One", "dev")
    Hooksaga(Stack(stack.node.scope, "others", env=PLACE), "Two", replace(ENVIRONMENTS["dev"], name="test"))


def with_domain(stack: Stack) -> None:
    certificate = acm.Certificate.from_certificate_arn(
        stack, "Certificate", "arn:aws:acm:eu-central-1:123456789012:certificate/1"
    )
    zone = route53.HostedZone.from_hosted_zone_attributes(
        stack, "Zone", hosted_zone_id="Z1", zone_name="example.com"
    )
    Hooksaga(stack, "Hooks", domain=Domain("hooks.example.com", certificate, zone))


CASES: dict[str, Define] = {
    "existing VPC": in_existing_vpc,
    "existing database": on_existing_database,
    "private API": with_private_api,
    "customer-managed key": with_key_and_boundary,
    "two deployments": two_of_them,
    "domain": with_domain,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Deployment]:
    """Return a case by its name, synthesised once."""
    known: dict[str, Deployment] = {}

    def make(name: str) -> Deployment:
        if name not in known:
            known[name] = synthesise(tmp_path_factory.mktemp("construct"), CASES[name])
        return known[name]

    return make


Made = Callable[[str], Deployment]


@pytest.mark.parametrize("case", CASES)
def test_templates_are_clean(made: Made, case: str) -> None:
    """cdk-nag has checked them when they were synthesised."""
    assert findings(made(case), NOT_OURS, ZONES_ARE_KNOWN, region=str(PLACE.region)) == []


@pytest.mark.parametrize("case", CASES)
def test_the_migration_waits_for_all_rules_and_endpoints(made: Made, case: str) -> None:
    deployment = made(case)
    kinds = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::VPCEndpoint")
    migrations = deployment.of_type("Custom::Migration").values()
    waited_for = {name for one in migrations for name in one["DependsOn"]}
    needed = {name for kind in kinds for name in deployment.of_type(kind) if "Api" not in name}
    functions = deployment.of_type("AWS::Lambda::Function").values()
    waited_for |= {
        name
        for one in functions
        if "migrate" in one["Properties"].get("Handler", "")
        for name in one["DependsOn"]
    }
    assert needed
    assert needed <= waited_for


def test_an_existing_vpc_gets_no_network_of_ours(made: Made) -> None:
    template = Template.from_json(made("existing VPC").templates[0])
    for kind in ("VPC", "Subnet", "NatGateway", "EIP", "VPCEndpoint", "Route"):
        template.resource_count_is(f"AWS::EC2::{kind}", 0)
    subnets = {
        name: set(one["VpcConfig"]["SubnetIds"]) for name, one in made("existing VPC").functions.items()
    }
    outbound = {name for name, ids in subnets.items() if ids == {"subnet-0000000a", "subnet-0000000b"}}
    assert outbound == {"delivery", "subscriptions", "console"}
    assert all(
        ids == {"subnet-1000000a", "subnet-1000000b"} for name, ids in subnets.items() if name not in outbound
    )


def test_functions_reach_the_existing_endpoints(made: Made) -> None:
    deployment = made("existing VPC")
    sources = {(group(deployment, name), 443) for name in ("Inside", "Outbound")}
    rules = deployment.of_type("AWS::EC2::SecurityGroupIngress").values()
    found = [one["Properties"] for one in rules if one["Properties"]["GroupId"] == "sg-0000000e"]
    assert {
        (deployment.text(one["SourceSecurityGroupId"]).split(".")[0], one["FromPort"]) for one in found
    } == sources


def test_alarms_notify_the_existing_topic(made: Made) -> None:
    template = Template.from_json(made("existing VPC").templates[0])
    template.resource_count_is("AWS::SNS::Topic", 0)
    template.all_resources_properties("AWS::CloudWatch::Alarm", {"AlarmActions": [TOPIC]})


def test_tags_are_on_the_resources(made: Made) -> None:
    tag = {"Key": "team", "Value": "orders"}
    for kind in ("AWS::Lambda::Function", "AWS::SQS::Queue", "AWS::RDS::DBInstance"):
        Template.from_json(made("existing VPC").templates[0]).all_resources_properties(
            kind, {"Tags": Match.array_with([tag])}
        )


def test_functions_log_in_to_the_existing_database(made: Made) -> None:
    deployment = made("existing database")
    assert not [one for one in deployment.resources.values() if one["Type"].startswith("AWS::RDS::")]
    for name in deployment.functions:
        told = deployment.environment(name)
        assert told["HOOKSAGA_DATABASE_HOST"] == "shop.cluster-1.eu-central-1.rds.amazonaws.com"
        assert (told["HOOKSAGA_DATABASE_PORT"], told["HOOKSAGA_DATABASE_NAME"]) == ("5433", "hooks")
        assert told.get("HOOKSAGA_DATABASE_SECRET_ARN") == (SECRET if name == "migrate" else None)
    assert deployment.who_may("secretsmanager:GetSecretValue", SECRET) == {"migrate"}
    user = f"arn:AWS::Partition:rds-db:eu-central-1:123456789012:dbuser:cluster-ABC/{Role.INGEST}"
    assert deployment.who_may("rds-db:connect", user) == {"ingest", "intake", "console"}


def test_the_existing_database_lets_only_the_functions_in(made: Made) -> None:
    deployment = made("existing database")
    rules = deployment.of_type("AWS::EC2::SecurityGroupIngress").values()
    found = [one["Properties"] for one in rules if one["Properties"]["GroupId"] == "sg-0000000d"]
    assert {
        (deployment.text(one["SourceSecurityGroupId"]).split(".")[0], one["FromPort"]) for one in found
    } == {(group(deployment, name), 5433) for name in ("Inside", "Outbound")}


@pytest.mark.parametrize("aurora", [True, False], ids=["Aurora", "RDS"])
def test_a_database_of_the_same_app_is_used_by_its_construct(tmp_path: Path, aurora: bool) -> None:
    def define(stack: Stack) -> None:
        vpc = ec2.Vpc(stack, "Vpc", nat_gateways=1)
        database = cluster(stack, vpc) if aurora else instance(stack, vpc)
        Hooksaga(Stack(stack.node.scope, "hooks", env=PLACE), "Hooks", vpc=vpc, database=database)

    app = App(outdir=str(tmp_path), context=NO_BUNDLES)
    define(Stack(app, "users", env=PLACE))
    app.synth()
    template = json.loads((tmp_path / "hooks.template.json").read_text())
    variables = [
        one["Properties"]["Environment"]["Variables"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function" and "HOOKSAGA_DATABASE_HOST" in json.dumps(one)
    ]
    assert len(variables) == len(ENVIRONMENTS["dev"].functions)
    for told in variables:
        assert "Endpoint" in told["HOOKSAGA_DATABASE_HOST"]["Fn::ImportValue"]
        assert "Endpoint" in told["HOOKSAGA_DATABASE_PORT"]["Fn::ImportValue"]


def cluster(stack: Stack, vpc: ec2.IVpc) -> rds.DatabaseCluster:
    return rds.DatabaseCluster(
        stack,
        "Database",
        engine=rds.DatabaseClusterEngine.aurora_postgres(version=rds.AuroraPostgresEngineVersion.VER_16_4),
        writer=rds.ClusterInstance.serverless_v2("Writer"),
        iam_authentication=True,
        vpc=vpc,
    )


def instance(stack: Stack, vpc: ec2.IVpc) -> rds.DatabaseInstance:
    return rds.DatabaseInstance(
        stack,
        "Database",
        engine=rds.DatabaseInstanceEngine.postgres(version=rds.PostgresEngineVersion.VER_17),
        iam_authentication=True,
        vpc=vpc,
    )


def test_only_the_endpoint_reaches_a_private_api(made: Made) -> None:
    deployment = made("private API")
    (api,) = (one["Properties"] for one in deployment.of_type("AWS::ApiGateway::RestApi").values())
    (endpoint,) = (name for name in deployment.of_type("AWS::EC2::VPCEndpoint") if "ApiEndpoint" in name)
    assert api["EndpointConfiguration"]["Types"] == ["PRIVATE"]
    assert [deployment.text(one) for one in api["EndpointConfiguration"]["VpcEndpointIds"]] == [endpoint]
    (statement,) = api["Policy"]["Statement"]
    assert statement["Effect"] == "Allow"
    assert deployment.text(statement["Condition"]["StringEquals"]["aws:SourceVpce"]) == endpoint
    assert deployment.resources[endpoint]["Properties"]["PrivateDnsEnabled"] is False
    Template.from_json(deployment.templates[0]).resource_count_is("AWS::WAFv2::WebACL", 0)
    url = deployment.text(deployment.templates[0]["Outputs"]["HooksApiUrl"]["Value"])
    (api_id,) = deployment.of_type("AWS::ApiGateway::RestApi")
    assert url == f"https://{api_id}-{endpoint}.execute-api.eu-central-1.AWS::URLSuffix/api/"
    (stage,) = deployment.of_type("AWS::ApiGateway::Stage").values()
    assert f"{deployment.text(stage['Properties']['Variables']['PUBLIC_URL'])}/" == url


ENCRYPTED = {
    "AWS::SQS::Queue": "KmsMasterKeyId",
    "AWS::SNS::Topic": "KmsMasterKeyId",
    "AWS::Logs::LogGroup": "KmsKeyId",
    "AWS::SecretsManager::Secret": "KmsKeyId",
    "AWS::RDS::DBInstance": "KmsKeyId",
}


@pytest.mark.parametrize("kind", ENCRYPTED)
def test_the_key_encrypts(made: Made, kind: str) -> None:
    deployment = made("customer-managed key")
    (key,) = deployment.of_type("AWS::KMS::Key")
    found = deployment.of_type(kind)
    assert found
    for one in found.values():
        assert deployment.text(one["Properties"][ENCRYPTED[kind]]) == f"{key}.Arn"
        assert "SqsManagedSseEnabled" not in one["Properties"]
    (database,) = deployment.of_type("AWS::RDS::DBInstance").values()
    assert deployment.text(database["Properties"]["MasterUserSecret"]["KmsKeyId"]) == f"{key}.Arn"


def test_functions_and_services_may_use_the_key(made: Made) -> None:
    deployment = made("customer-managed key")
    (key,) = deployment.of_type("AWS::KMS::Key")
    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        assert set(deployment.functions) <= deployment.who_may(action, f"{key}.Arn")
    policy = deployment.resources[key]["Properties"]["KeyPolicy"]["Statement"]
    services = {one["Principal"].get("Service") for one in policy}
    assert {"logs.eu-central-1.amazonaws.com", "cloudwatch.amazonaws.com"} <= services


def test_every_role_has_the_boundary(made: Made) -> None:
    deployment = made("customer-managed key")
    roles = deployment.of_type("AWS::IAM::Role")
    assert roles
    for one in roles.values():
        assert deployment.text(one["Properties"]["PermissionsBoundary"]).endswith(":policy/boundary")


NAMES = {
    "AWS::ApiGateway::RestApi": "Name",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::Events::Rule": "Name",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SecretsManager::Secret": "Name",
}


def test_two_deployments_of_an_account_share_no_name(made: Made) -> None:
    deployment = made("two deployments")
    first, second = (set(names_in(template)) for template in deployment.templates)
    assert len(first) == len(second) > 60
    assert not first & second
    exported = [
        output
        for template in deployment.templates
        for output in template["Outputs"].values()
        if "Export" in output
    ]
    assert exported == []


def names_in(template: dict[str, Any]) -> list[tuple[str, str]]:
    named = [
        (one["Type"], one["Properties"]) for one in template["Resources"].values() if one["Type"] in NAMES
    ]
    return [(kind, properties[NAMES[kind]]) for kind, properties in named if NAMES[kind] in properties]


def test_every_kind_with_a_name_is_compared(made: Made) -> None:
    """A resource that contains the deployment's name has a property of NAMES, or belongs to one."""
    template = made("two deployments").templates[0]
    assert template["Resources"]
    for one in template["Resources"].values():
        for field, value in one.get("Properties", {}).items():
            if (
                field.endswith("Name")
                and isinstance(value, str)
                and value.startswith(("hooksaga-", "/hooksaga"))
            ):
                assert NAMES[one["Type"]] == field, one


def test_a_domain_in_a_zone_has_its_record(made: Made) -> None:
    deployment = made("domain")
    (record,) = deployment.of_type("AWS::Route53::RecordSet").values()
    assert record["Properties"]["Name"] == "hooks.example.com."
    (name,) = deployment.of_type("AWS::ApiGateway::DomainName")
    assert deployment.text(record["Properties"]["AliasTarget"]["DNSName"]) == f"{name}.RegionalDomainName"
    assert deployment.templates[0]["Outputs"]["HooksApiUrl"]["Value"] == "https://hooks.example.com/"


def test_named_subnets_are_used(tmp_path: Path) -> None:
    def define(stack: Stack) -> None:
        def subnet(name: str) -> ec2.SubnetSelection:
            zones = [("a", "eu-central-1a"), ("b", "eu-central-1b")]
            return ec2.SubnetSelection(
                subnets=[
                    ec2.Subnet.from_subnet_attributes(
                        stack, f"{name}{zone}", subnet_id=f"{name}-{zone}", availability_zone=place
                    )
                    for zone, place in zones
                ]
            )

        Hooksaga(
            stack,
            "Hooks",
            vpc=existing_vpc(stack),
            subnets=Subnets(subnet("out"), subnet("in"), subnet("db")),
        )

    deployment = synthesise(tmp_path, define)
    assert set(deployment.functions["delivery"]["VpcConfig"]["SubnetIds"]) == {"out-a", "out-b"}
    assert set(deployment.functions["ingest"]["VpcConfig"]["SubnetIds"]) == {"in-a", "in-b"}
    (subnets,) = deployment.of_type("AWS::RDS::DBSubnetGroup").values()
    assert set(subnets["Properties"]["SubnetIds"]) == {"db-a", "db-b"}
    endpoints = deployment.of_type("AWS::EC2::VPCEndpoint").values()
    assert [one["Properties"]["SubnetIds"] for one in endpoints] == [["in-a"], ["in-a"]]
    assert ingress(deployment, group(deployment, "Endpoints"))
