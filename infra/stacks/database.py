"""Stack of the database, which holds all state."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.database import Database
from infra.components.place import Places


class DatabaseStack(Stack):
    """`database` is what functions log in to."""

    def __init__(self, scope: Construct, env: Environment, places: Places) -> None:
        super().__init__(scope, f"{env.prefix}-database", description="hooksaga: database")
        self.database = Database(self, "Database", env, places.vpc, places.rules)
        # Logins past a proxy name it. An export that another stack uses cannot go away before its use.
        self.export_value(self.database.instance.instance_resource_id)
        CfnOutput(self, "DatabaseHost", value=self.database.instance.db_instance_endpoint_address)
