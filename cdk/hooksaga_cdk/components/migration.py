"""Migrates the schema during a deployment, before the new code of other functions runs.

CloudFormation waits for the result. A failed migration fails the deployment, with the database's message as its
reason, and CloudFormation rolls back.
"""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import CfnElement, CustomResource, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

from hooksaga.adapters.database import Role
from hooksaga.aws.deployment import Environment
from hooksaga_cdk.bundling import ARM, CERTIFICATES, digest_of
from hooksaga_cdk.components.database_access import DatabaseAccess
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.function import LeastFunction
from hooksaga_cdk.components.kept_logs import log_group
from hooksaga_cdk.components.place import Place

BASIC_EXECUTION = (
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]"
)


class Migration(Construct):
    """Runs if the migrations, or their code, changed since the last deployment. Resources that must come later depend
    on it."""

    def __init__(
        self, scope: Construct, name: str, *, env: Environment, place: Place | None, database: DatabaseAccess
    ) -> None:
        super().__init__(scope, name)
        self.migrate = LeastFunction(
            self,
            "migrate",
            env=env,
            limits=env.migrate,
            place=place,
            environment=database.environment(Role.OWNER),
        )
        database.allow_login(self.migrate.role, Role.OWNER)
        provider = self._provider(log_group(self, "ProviderLog", f"/hooksaga/{env.name}/migration", env))
        run = CustomResource(
            self,
            "Run",
            resource_type="Custom::Migration",
            service_token=provider.service_token,
            properties={"Schema": digest_of("migrate", ARM, env.database.ca_file or CERTIFICATES)},
        )
        run.node.add_dependency(self.migrate)

    def _provider(self, log: logs.LogGroup) -> cr.Provider:
        provider = cr.Provider(self, "Provider", on_event_handler=self.migrate.function, log_group=log)
        allow(
            provider,
            BASIC_EXECUTION,
            "The CDK's own function between CloudFormation and migrate: it writes its log.",
        )
        allow(
            provider,
            f"AwsSolutions-IAM5[Resource::<{self._logical_id()}.Arn>:*]",
            "Migrate, whichever version.",
        )
        allow(provider, "AwsSolutions-L1", "The CDK chooses its runtime.")
        return provider

    def _logical_id(self) -> str:
        resource = self.migrate.function.node.default_child
        assert isinstance(resource, CfnElement)
        return Stack.of(self).get_logical_id(resource)
