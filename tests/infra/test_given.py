"""The app with an existing VPC and database in its context, as docs/deploy.md names them."""

import re

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from infra.given import OF_DATABASE, OF_VPC, OPTIONAL_OF_DATABASE
from tests.infra.conftest import ROOT, synthesise
from tests.infra.deployment import Deployment
from tests.infra.test_construct import ZONES_ARE_KNOWN
from tests.infra.test_good_practice import NOT_OURS, findings
from tests.infra.test_refusals import CONTEXT

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return synthesise(
        tmp_path_factory.mktemp("given"), env="prod", database_port="5433", database_name="hooks", **CONTEXT
    )


def test_nothing_of_it_is_created(given: Deployment) -> None:
    kinds = {one["Type"] for one in given.resources.values()}
    assert not [kind for kind in kinds if kind.startswith("AWS::RDS::")]
    assert not kinds & {"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::NatGateway", "AWS::EC2::EIP"}
    assert findings(given, NOT_OURS, ZONES_ARE_KNOWN) == []


def test_only_migrate_logs_in_by_the_given_secret(given: Deployment) -> None:
    assert given.who_may("secretsmanager:GetSecretValue", CONTEXT["database_secret_arn"]) == {"migrate"}
    for name in given.functions:
        told = given.environment(name)
        assert told["HOOKSAGA_DATABASE_HOST"] == CONTEXT["database_endpoint"]
        assert (told["HOOKSAGA_DATABASE_PORT"], told["HOOKSAGA_DATABASE_NAME"]) == ("5433", "hooks")
        secret = told.get("HOOKSAGA_DATABASE_SECRET_ARN")
        assert secret == (CONTEXT["database_secret_arn"] if name == "migrate" else None)


def test_functions_are_in_the_given_subnets(given: Deployment) -> None:
    places = {name: ",".join(one["VpcConfig"]["SubnetIds"]) for name, one in given.functions.items()}
    outside = {name for name, subnets in places.items() if subnets == CONTEXT["outbound_subnets"]}
    assert outside == {"delivery", "subscriptions", "console"}
    assert {places[name] for name in places if name not in outside} == {CONTEXT["inside_subnets"]}


def test_the_page_names_every_context() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    table = page.split("| context | example |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", table)) == {*OF_VPC, *OF_DATABASE, *OPTIONAL_OF_DATABASE}
