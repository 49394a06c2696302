"""Stack of the alarms and the dashboard."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.alarms import Alarms
from infra.components.dashboard import Dashboard
from infra.components.database import Database
from infra.components.function import LeastFunction
from infra.components.queues import Queues
from infra.components.rest_api import RestApi
from infra.components.watched_api import watch_api
from infra.components.watched_database import watch_database
from infra.components.watched_functions import watch_functions
from infra.components.watched_queues import watch_queues
from infra.components.watched_work import watch_work


class ObservabilityStack(Stack):
    """`database` is None if the deployment does not include it."""

    def __init__(
        self,
        scope: Construct,
        env: Environment,
        *,
        queues: Queues,
        functions: Mapping[str, LeastFunction],
        api: RestApi,
        database: Database | None,
    ) -> None:
        super().__init__(scope, f"{env.prefix}-observability", description="hooksaga: alarms and dashboard")
        alarms = Alarms(self, "Alarms", env)
        widgets = [
            *watch_api(alarms, api),
            *watch_queues(alarms, queues),
            *watch_work(alarms, functions),
            *watch_functions(alarms, functions),
            *(watch_database(alarms, env, database) if database else []),
        ]
        Dashboard(self, "Dashboard", env, widgets)
        CfnOutput(self, "AlarmTopic", value=alarms.topic.topic_arn)
