"""Log groups with the configured retention."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from hooksaga.aws.deployment import Environment
from hooksaga.aws.deployment_limits import LOG_DAYS

_RETENTION = dict(zip(LOG_DAYS, logs.RetentionDays, strict=False))
"""Both are in ascending order; the last of the CDK's is for ever."""


def log_group(scope: Construct, name: str, log_group_name: str, env: Environment) -> logs.LogGroup:
    """Create a log group that is deleted with the deployment."""
    return logs.LogGroup(
        scope,
        name,
        log_group_name=log_group_name,
        retention=_RETENTION[env.log_days],
        removal_policy=RemovalPolicy.DESTROY,
    )
