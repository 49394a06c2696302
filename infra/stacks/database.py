"""Stack of the database."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.database import Database
from infra.components.place import Places


class DatabaseStack(Stack):
    def __init__(self, scope: Construct, env: Environment, places: Places) -> None:
        super().__init__(scope, f"{env.prefix}-database", description="hooksaga: database")
        self.database = Database(self, "Database", env, places.vpc, places.rules)
        # Logins that bypass the proxy name it. An export cannot be removed before its use in another stack.
        self.export_value(self.database.instance.instance_resource_id)
        CfnOutput(self, "DatabaseHost", value=self.database.instance.db_instance_endpoint_address)
