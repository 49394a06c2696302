"""Log groups with the configured retention."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from hooksaga.aws.deployment import Environment

_RETENTION = {
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    90: logs.RetentionDays.THREE_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


def log_group(scope: Construct, name: str, log_group_name: str, env: Environment) -> logs.LogGroup:
    """Create a log group that is deleted with the deployment. Raises KeyError for a `log_days` that CloudWatch does
    not support."""
    return logs.LogGroup(
        scope,
        name,
        log_group_name=log_group_name,
        retention=_RETENTION[env.log_days],
        removal_policy=RemovalPolicy.DESTROY,
    )
