"""What a deployment may use instead of creating it: a database, a domain."""

from dataclasses import dataclass

from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_secretsmanager as secretsmanager

from hooksaga_cdk.components.database_access import RdsDatabase, Server


@dataclass(frozen=True, slots=True)
class ExistingDatabase:
    """An RDS instance or an Aurora cluster that exists, of PostgreSQL 15 or newer.

    What hooksaga needs of it:

    - IAM database authentication is enabled: functions have no passwords.
    - The database `name` exists. hooksaga creates its schema in it, and its roles in the whole instance or cluster.
    - `secret` contains `username` and `password`, as RDS writes it, of a user who may create roles and grant
      `rds_iam`: the master user, or a member of `rds_superuser`. Only `migrate` reads it.
    - `security_group` is one of its groups. Rules that let the functions in are added to it.
    - `max_connections` is at least `database.connection_limit` of the settings.
    - Its certificate is of RDS's authority `rds-ca-rsa2048-g1`, the default, or `database.ca_file` names another.

    `resource_id` is `db-...` or `cluster-...`, which the rights to log in name: `DbiResourceId` or
    `DbClusterResourceId` in `aws rds describe-db-instances` or `describe-db-clusters`.
    """

    endpoint: str
    resource_id: str
    secret: secretsmanager.ISecret
    security_group: ec2.ISecurityGroup
    port: float = 5432
    name: str = "hooksaga"

    @classmethod
    def of(
        cls, database: rds.DatabaseInstance | rds.DatabaseCluster, name: str = "hooksaga"
    ) -> "ExistingDatabase":
        """Describe an instance or a cluster that is defined in this app. Raises ValueError if it has no secret."""
        if database.secret is None:
            raise ValueError(f"{database.node.path} has no secret: define it with credentials from a secret")
        endpoint: rds.Endpoint
        resource_id: str | None
        if isinstance(database, rds.DatabaseInstance):
            endpoint, resource_id = database.instance_endpoint, database.instance_resource_id
        else:
            endpoint, resource_id = database.cluster_endpoint, database.cluster_resource_identifier
        assert resource_id is not None, "what is defined has one"
        return cls(
            endpoint=endpoint.hostname,
            resource_id=resource_id,
            secret=database.secret,
            security_group=database.connections.security_groups[0],
            port=endpoint.port,
            name=name,
        )

    @property
    def access(self) -> RdsDatabase:
        server = Server(self.endpoint, self.resource_id)
        return RdsDatabase(server, server, self.secret, self.name, self.port)


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain name of the API, with its certificate in the same region. With a zone, its records are created."""

    name: str
    certificate: acm.ICertificate
    zone: route53.IHostedZone | None = None
