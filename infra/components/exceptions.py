"""Exceptions from the AwsSolutions rules, each with its reason beside what it is about."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def allow(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept a finding on this construct and all within it. A rule with findings of its own is `RuleId[finding]`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
