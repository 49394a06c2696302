"""What AWS would refuse during a deployment is refused before anything is synthesised, all at once and by name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from aws_cdk import App, Stack
from aws_cdk import Environment as Place
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs

from hooksaga.aws.deployment import (
    ENVIRONMENTS,
    ApiSettings,
    DatabaseSettings,
    Environment,
    FunctionLimits,
    InvalidDeployment,
)
from hooksaga.aws.deployment_limits import LOG_DAYS
from hooksaga_cdk import Domain, Hooksaga, Subnets
from hooksaga_cdk.bundling import regions_with_certificates
from hooksaga_cdk.components.network import SUBNETS
from infra.app import build
from tests.infra.conftest import NO_BUNDLES
from tests.infra.test_construct import existing_database

DEV = ENVIRONMENTS["dev"]
CERTIFICATE = "arn:aws:acm:eu-central-1:123456789012:certificate/1"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": "Prod"}, "name is 'Prod'"),
        ({"name": "two--hyphens"}, "name is 'two--hyphens'"),
        ({"name": "ends-"}, "name is 'ends-'"),
        ({"name": "n" * 31}, "name has 31 characters: at most 30"),
        ({"zones": 1}, "zones is 1: 2 to 6"),
        ({"log_days": 45}, "log_days is 45: CloudWatch Logs allows 1, 3, 5"),
        ({"address_range": "10.0.0.0"}, "address_range is 10.0.0.0: 2 zones need 4096 addresses"),
        ({"address_range": "10.0.0.1/16"}, "address_range is '10.0.0.1/16': an IPv4 range"),
        ({"address_range": "fd00::/56"}, "address_range is 'fd00::/56': an IPv4 range"),
        ({"address_range": "10.0.0.0/8"}, "a VPC has at most a /16"),
        ({"address_range": "10.0.0.0/21"}, "2 zones need 4096 addresses"),
        ({"zones": 5, "address_range": "10.0.0.0/19"}, "5 zones need 8704 addresses"),
        ({"receiver_ports": ()}, "receiver_ports is"),
        ({"receiver_ports": (443, 70000)}, "receiver_ports is"),
        ({"alarm_mail": "operators"}, "alarm_mail is 'operators'"),
        ({"database": DatabaseSettings(instance_class="db.t4g.micro")}, "without a leading db."),
        ({"database": DatabaseSettings(storage_gb=10)}, "database.storage_gb is 10"),
        ({"database": DatabaseSettings(storage_gb=100)}, "database.storage_limit_gb is 100"),
        ({"database": DatabaseSettings(backup_days=36)}, "database.backup_days is 36"),
        ({"api": ApiSettings(domain_name="hooks.example.com")}, "api.domain_name needs api.certificate_arn"),
        (
            {"api": ApiSettings(domain_name="A.example", certificate_arn=CERTIFICATE)},
            "a host name in lower case",
        ),
        ({"api": ApiSettings(domain_name="a.example", certificate_arn="a")}, "api.certificate_arn is 'a'"),
        ({"api": ApiSettings(burst=0)}, "api.burst is 0"),
        ({"router": FunctionLimits(50, 4, memory_mb=64)}, "router.memory_mb is 64"),
        ({"migrate": FunctionLimits(901, 1)}, "migrate.timeout_seconds is 901"),
        ({"receives": 0}, "receives is 0"),
    ],
)
def test_a_setting_is_refused_by_its_name_and_rule(change: dict[str, Any], line: str) -> None:
    with pytest.raises(InvalidDeployment) as refused:
        replace(DEV, **change)
    assert line in str(refused.value)
    assert str(refused.value).count("\n") == 0


def test_all_broken_rules_are_named_at_once() -> None:
    with pytest.raises(InvalidDeployment) as refused:
        Environment("Prod", zones=1, log_days=45, retry_jitter=-1, address_range="10.0.0.0/8")
    lines = str(refused.value).splitlines()
    for name in ("name", "zones", "log_days", "HOOKSAGA_RETRY_JITTER", "address_range"):
        assert any(line.startswith(f"Prod: {name}") for line in lines), name
    assert len(lines) == 5


@pytest.mark.parametrize("name", ["a", "n" * 30, "eu-prod-2"])
def test_a_name_that_fits_every_resource_is_accepted(name: str) -> None:
    assert replace(DEV, name=name).prefix == f"hooksaga-{name}"


def test_every_retention_time_of_cloudwatch_can_be_chosen() -> None:
    of_cdk = [one for one in logs.RetentionDays if one is not logs.RetentionDays.INFINITE]
    assert len(of_cdk) == len(LOG_DAYS)
    assert list(LOG_DAYS) == sorted(LOG_DAYS)
    assert [replace(DEV, log_days=days).log_days for days in LOG_DAYS] == list(LOG_DAYS)


def user_stack(region: str | None = "eu-central-1") -> Stack:
    place = Place(account="123456789012", region=region) if region else None
    return Stack(App(context=NO_BUNDLES), "users", env=place)


def without_private_subnets(stack: Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack, "Public", vpc_id="vpc-1", availability_zones=["a"], public_subnet_ids=["subnet-1"]
    )


def domain(stack: Stack) -> Domain:
    return Domain("a.example", acm.Certificate.from_certificate_arn(stack, "Certificate", CERTIFICATE))


REFUSED: dict[str, tuple[Callable[[Stack], dict[str, Any]], list[str]]] = {
    "a database without its VPC": (
        lambda stack: {"database": existing_database(stack)},
        ["database needs vpc"],
    ),
    "subnets and endpoints without their VPC": (
        lambda stack: {
            "subnets": Subnets(SUBNETS.outbound, SUBNETS.inside, SUBNETS.database),
            "endpoints": ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-1"),
        },
        ["subnets needs vpc", "endpoints needs vpc"],
    ),
    "a VPC without a way out": (
        lambda stack: {"vpc": without_private_subnets(stack)},
        ["vpc has no private subnets"],
    ),
    "a private API with a domain": (
        lambda stack: {"private_api": True, "domain": domain(stack)},
        ["private_api has no domain"],
    ),
    "two domains": (
        lambda stack: {
            "domain": domain(stack),
            "settings": replace(DEV, api=ApiSettings(domain_name="b.example", certificate_arn=CERTIFICATE)),
        },
        ["domain and settings.api.domain_name"],
    ),
    "a certificate of another region": (
        lambda stack: {
            "settings": replace(
                DEV, api=ApiSettings(domain_name="b.example", certificate_arn=CERTIFICATE.replace("eu", "us"))
            )
        },
        ["the certificate of the domain is in us-central-1: the API needs one in eu-central-1"],
    ),
    "a file that is missing": (
        lambda stack: {"settings": replace(DEV, database=DatabaseSettings(ca_file=Path("/missing.pem")))},
        ["settings.database.ca_file is /missing.pem"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_contradicts_itself_is_refused(case: str) -> None:
    arguments, lines = REFUSED[case]
    stack = user_stack()
    with pytest.raises(InvalidDeployment) as refused:
        Hooksaga(stack, "Hooks", **arguments(stack))
    found = str(refused.value).splitlines()
    assert len(found) == len(lines)
    for line, start in zip(found, lines, strict=True):
        assert line.startswith(f"users/Hooks: {start}")


def test_more_zones_than_the_cdk_knows_are_refused() -> None:
    with pytest.raises(InvalidDeployment, match=r"settings.zones is 3: the CDK knows 2"):
        Hooksaga(user_stack(region=None), "Hooks", replace(DEV, zones=3))


def test_a_region_without_a_certificate_is_refused_with_its_address() -> None:
    assert "eu-central-1" in regions_with_certificates()
    assert "il-central-1" not in regions_with_certificates()
    with pytest.raises(InvalidDeployment, match=r"https://truststore.*/il-central-1/il-central-1-bundle.pem"):
        Hooksaga(user_stack("il-central-1"), "Hooks")


def test_a_second_deployment_of_the_same_name_is_refused() -> None:
    app = App(context=NO_BUNDLES)
    Hooksaga(Stack(app, "one"), "Hooks")
    with pytest.raises(InvalidDeployment, match=r"settings.name is 'dev', as of another Hooksaga"):
        Hooksaga(Stack(app, "two"), "Hooks")


CONTEXT = {
    "vpc_id": "vpc-01234567",
    "vpc_zones": "eu-central-1a,eu-central-1b",
    "outbound_subnets": "subnet-0000000a,subnet-0000000b",
    "inside_subnets": "subnet-1000000a,subnet-1000000b",
    "database_endpoint": "shop.cluster-1.eu-central-1.rds.amazonaws.com",
    "database_resource_id": "cluster-ABC",
    "database_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop-Ab12Cd",
    "database_security_group": "sg-0000000d",
}


@pytest.mark.parametrize(
    ("context", "line"),
    [
        ({"vpc_id": "vpc-1"}, "outbound_subnets is missing: vpc_id needs it"),
        ({"database_name": "hooks"}, "database_secret_arn is missing: database_name needs it"),
        ({**CONTEXT, "database_resource_id": ""}, "database_resource_id is missing"),
        ({**CONTEXT, "database_port": "many"}, "database_port is 'many': 1 to 65535"),
        ({**CONTEXT, "inside_subnets": "subnet-1"}, "inside_subnets has 1 subnets: one in each of vpc_zones"),
    ],
)
def test_an_incomplete_context_of_the_app_is_refused(context: dict[str, str], line: str) -> None:
    with pytest.raises(InvalidDeployment) as refused:
        build(App(context={**NO_BUNDLES, **context}))
    assert line in str(refused.value)
