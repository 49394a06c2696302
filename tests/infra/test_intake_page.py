"""The CDK program of docs/intake.md makes a rule and a subscription that send to the intake."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from hooksaga.aws.deployment import ENVIRONMENTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "intake.md").read_text(encoding="utf-8")
INTAKE = "arn:aws:sqs:us-east-1:123456789012:hooksaga-dev-intake"


def resources(template: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in template["Resources"].values() if one["Type"] == kind]


def test_the_program_of_the_page_sends_to_the_intake() -> None:
    (program,) = re.findall(r"^```python\n(from aws_cdk .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    stack = Stack(App(), "Shop")
    exec(program.replace("INTAKE_ARN", INTAKE), {"self": stack})
    template = Template.from_stack(stack).to_json()
    (rule,) = resources(template, "AWS::Events::Rule")
    (subscription,) = resources(template, "AWS::SNS::Subscription")
    assert rule["EventPattern"] == {"source": ["shop.orders"]}
    assert [target["Arn"] for target in rule["Targets"]] == [INTAKE]
    assert all("DeadLetterConfig" in target for target in rule["Targets"])
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("sqs", INTAKE)
    assert "RedrivePolicy" in subscription


def test_the_page_says_the_numbers_of_the_deployment() -> None:
    env = ENVIRONMENTS["dev"]
    minutes = env.visibility_seconds("intake") // 60
    assert f"visibility timeout ({minutes} minutes), and after {env.intake_receives} receives" in PAGE
    assert env.intake_receives * minutes == 5 * 60
    assert "an outage of five hours" in PAGE
