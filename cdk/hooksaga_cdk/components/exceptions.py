"""Suppressions of AwsSolutions findings, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def allow(construct: IConstruct, rule: str, reason: str) -> None:
    """Suppress a finding on this construct and its children. A granular rule is `RuleId[finding]`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
