"""Stack of the queues, the functions, their triggers, and the migration that precedes new code."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.database_access import DatabaseAccess
from infra.components.function_set import FunctionSet
from infra.components.migration import Migration
from infra.components.place import Places
from infra.components.queues import Queues
from infra.components.secrets_key import SecretsKey
from infra.components.ticks import Ticks


class PipelineStack(Stack):
    """`places` is None without a VPC; `extra` are variables of every function."""

    def __init__(
        self,
        scope: Construct,
        env: Environment,
        *,
        places: Places | None,
        database: DatabaseAccess,
        extra: Mapping[str, str],
    ) -> None:
        super().__init__(scope, f"{env.prefix}-pipeline", description="hooksaga: queues and functions")
        inside = places.of(calls_receivers=False) if places else None
        migration = Migration(self, "Migration", env=env, place=inside, database=database)
        self.queues = Queues(self, "Queues", env)
        self.functions = FunctionSet(
            self,
            "Functions",
            env=env,
            places=places,
            database=database,
            queues=self.queues,
            secrets_key=SecretsKey(self, "SecretsKey", env),
            extra=extra,
            after=migration,
        ).functions
        Ticks(self, "Ticks", env, self.functions)
        self._add_outputs(env)

    def _add_outputs(self, env: Environment) -> None:
        for queue, resource in self.queues.work.items():
            CfnOutput(
                self,
                f"{queue.value.replace('_', ' ').title().replace(' ', '')}QueueUrl",
                value=resource.queue_url,
            )
        CfnOutput(self, "AdminFunction", value=f"{env.prefix}-admin")
