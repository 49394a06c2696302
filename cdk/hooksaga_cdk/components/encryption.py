"""Encryption by a customer-managed key, in place of the keys that AWS manages."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from collections.abc import Iterable

import jsii
from aws_cdk import Aspects, IAspect, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

USES = ("kms:Decrypt", "kms:GenerateDataKey")
FOR_LOGS = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")


def encrypt(scope: Construct, key: kms.IKey, users: Iterable[iam.Role]) -> None:
    """Encrypt all queues, logs, secrets, databases and topics in the scope with the key, and allow the users its use.

    The key's policy is extended if the key is one of this app. That of an imported key must contain the statements
    of `key_statements`.
    """
    Aspects.of(scope).add(_EncryptWith(key.key_arn))
    for role in users:
        role.add_to_principal_policy(iam.PolicyStatement(actions=list(USES), resources=[key.key_arn]))
    for statement in key_statements(scope):
        key.add_to_resource_policy(statement)


def key_statements(scope: Construct) -> list[iam.PolicyStatement]:
    """Return what the key's policy must allow besides this account: log groups, and alarms that notify the topic."""
    stack = Stack.of(scope)
    groups = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:*"
    return [
        iam.PolicyStatement(
            sid="LogGroups",
            principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
            actions=list(FOR_LOGS),
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        ),
        iam.PolicyStatement(
            sid="Alarms",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=list(USES),
            resources=["*"],
            conditions={"StringEquals": {"aws:SourceAccount": stack.account}},
        ),
    ]


@jsii.implements(IAspect)
class _EncryptWith:
    """Sets the key on every resource in the scope that can have one."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, sqs.CfnQueue):
            node.sqs_managed_sse_enabled = None
            node.kms_master_key_id = self._arn
        elif isinstance(node, sns.CfnTopic):
            node.kms_master_key_id = self._arn
        elif isinstance(node, logs.CfnLogGroup | secretsmanager.CfnSecret):
            node.kms_key_id = self._arn
        elif isinstance(node, rds.CfnDBInstance):
            node.kms_key_id = self._arn
            node.add_property_override("MasterUserSecret.KmsKeyId", self._arn)
