"""Alarms. Each description names the runbook section with its meaning and the commands."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from hooksaga.aws.deployment import Environment


@dataclass(frozen=True, slots=True)
class Limit:
    """The alarm fires if the metric is at or above (`below`: under) the threshold for this many periods."""

    threshold: float
    periods: int = 1
    below: bool = False
    alarm_when_missing: bool = False


class Alarms(Construct):
    """All alarms notify one topic, with a mail subscription if an address is set. A given topic must accept
    messages of CloudWatch."""

    def __init__(
        self, scope: Construct, name: str, env: Environment, topic: sns.ITopic | None = None
    ) -> None:
        super().__init__(scope, name)
        self._env = env
        self.takes_expressions = not env.is_local
        """Whether a metric may be computed from others, which an emulator cannot."""
        self.topic = topic or sns.Topic(self, "Topic", topic_name=f"{env.prefix}-alarms")
        if topic is None and not env.is_local:
            self._allow_alarms_to_publish()
            self._deny_plain_http()
        if env.alarm_mail:
            self.topic.add_subscription(subscriptions.EmailSubscription(env.alarm_mail))

    def add(self, page: str, subject: str, metric: cloudwatch.IMetric, limit: Limit) -> None:
        """Add an alarm. `page` is the heading in the runbook, `subject` the resource; together they are its name."""
        alarm = cloudwatch.Alarm(
            self,
            f"{page} {subject}".title().replace(" ", "").replace("-", "").replace("_", ""),
            alarm_name=f"{self._env.prefix} {page}: {subject}",
            alarm_description=f"{self._env.runbook_url}#{page}",
            metric=metric,
            threshold=limit.threshold,
            evaluation_periods=limit.periods,
            comparison_operator=_OPERATORS[limit.below],
            treat_missing_data=_MISSING[limit.alarm_when_missing],
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))

    def _allow_alarms_to_publish(self) -> None:
        """Allow CloudWatch to publish: a custom policy replaces the topic's default one, which allows it."""
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )

    def _deny_plain_http(self) -> None:
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"Bool": {"aws:SecureTransport": "false"}},
            )
        )


_OPERATORS = {
    False: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    True: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
}
_MISSING = {
    False: cloudwatch.TreatMissingData.NOT_BREACHING,
    True: cloudwatch.TreatMissingData.BREACHING,
}
FIVE_MINUTES = Duration.minutes(5)


def metric_of(namespace: str, name: str, dimensions: dict[str, str], statistic: str) -> cloudwatch.Metric:
    """Return a metric over five minutes."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=FIVE_MINUTES,
    )
