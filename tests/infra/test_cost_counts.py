"""The resources that `hooksaga cost` counts are those of a deployment."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS, Environment
from hooksaga.cost import bill, work
from tests.infra.deployment import Deployment


def env_of(deployment: Deployment) -> Environment:
    return ENVIRONMENTS[deployment.functions["ingest"]["FunctionName"].split("-")[1]]


def test_alarms_and_queues_are_those_of_the_stack(on_aws: Deployment) -> None:
    assert len(on_aws.of_type("AWS::CloudWatch::Alarm")) == bill.alarms_of(env_of(on_aws))
    assert len(on_aws.of_type("AWS::Lambda::EventSourceMapping")) == work.READ_QUEUES
    assert len(on_aws.of_type("AWS::Events::Rule")) == len(work.TICKING)
    assert (
        len(on_aws.of_type("AWS::SecretsManager::Secret")) + 1 == bill.SECRETS
    )  # and the one that RDS makes


def test_the_firewall_has_as_many_rules(prod: Deployment) -> None:
    (firewall,) = prod.of_type("AWS::WAFv2::WebACL").values()
    assert len(firewall["Properties"]["Rules"]) == bill.FIREWALL_RULES


def test_a_method_has_no_metrics_with_a_price_of_their_own(on_aws: Deployment) -> None:
    (stage,) = on_aws.of_type("AWS::ApiGateway::Stage").values()
    assert not any(one.get("MetricsEnabled") for one in stage["Properties"]["MethodSettings"])
