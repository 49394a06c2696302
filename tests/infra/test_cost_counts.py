"""The resources that `hooksaga cost` counts are those of a deployment."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.cost import bill, work
from tests.infra.deployment import Deployment


def test_alarms_and_queues_are_those_of_the_stack(on_aws: Deployment) -> None:
    assert len(on_aws.of_type("AWS::CloudWatch::Alarm")) == bill.ALARMS
    assert len(on_aws.of_type("AWS::Lambda::EventSourceMapping")) == work.READ_QUEUES
    assert len(on_aws.of_type("AWS::Events::Rule")) == len(work.TICKING)
    assert (
        len(on_aws.of_type("AWS::SecretsManager::Secret")) + 1 == bill.SECRETS
    )  # and the one that RDS makes


def test_the_firewall_has_as_many_rules(prod: Deployment) -> None:
    (firewall,) = prod.of_type("AWS::WAFv2::WebACL").values()
    assert len(firewall["Properties"]["Rules"]) == bill.FIREWALL_RULES
