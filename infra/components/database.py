"""PostgreSQL 18 on RDS, which stores all state, and optionally RDS Proxy in front of it."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_rds as rds
from constructs import Construct

from hooksaga.adapters.database import Role
from hooksaga.aws.deployment import Environment
from infra.components.access_rules import AccessRules
from infra.components.database_access import RdsDatabase, login_arn
from infra.components.exceptions import allow
from infra.components.network import DATABASE

NAME = "hooksaga"
PORT = 5432


class Database(Construct):
    """`access` is how functions log in. RDS creates and rotates the owner's password."""

    def __init__(
        self, scope: Construct, name: str, env: Environment, vpc: ec2.IVpc, rules: AccessRules
    ) -> None:
        super().__init__(scope, name)
        self._env = env
        self.instance = self._instance(vpc, rules)
        self._accept_findings()
        proxy = self._proxy(vpc, rules) if env.database.proxy else None
        self.access = RdsDatabase(self.instance, proxy, NAME)

    def _instance(self, vpc: ec2.IVpc, rules: AccessRules) -> rds.DatabaseInstance:
        wanted = self._env.database
        keep = wanted.keep_when_destroyed
        return rds.DatabaseInstance(
            self,
            "Instance",
            engine=_engine(),
            instance_type=ec2.InstanceType(wanted.instance_class),
            database_name=NAME,
            port=PORT,
            credentials=rds.Credentials.from_username("hooksaga_owner"),
            manage_master_user_password=True,
            parameter_group=self._parameters(),
            ca_certificate=rds.CaCertificate.RDS_CA_RSA2048_G1,
            iam_authentication=True,
            storage_encrypted=True,
            storage_type=rds.StorageType.GP3,
            allocated_storage=wanted.storage_gb,
            max_allocated_storage=wanted.storage_limit_gb,
            multi_az=wanted.multi_az,
            backup_retention=Duration.days(wanted.backup_days),
            copy_tags_to_snapshot=True,
            deletion_protection=keep,
            removal_policy=RemovalPolicy.SNAPSHOT if keep else RemovalPolicy.DESTROY,
            delete_automated_backups=not keep,
            vpc=vpc,
            vpc_subnets=DATABASE,
            security_groups=[self._fixed(rules.database)],
        )

    def _parameters(self) -> rds.ParameterGroup:
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=_engine(),
            description="hooksaga",
            parameters={
                "max_connections": str(self._env.database.connection_limit),
                "rds.force_ssl": "1",
                "log_min_duration_statement": "1000",
                "log_parameter_max_length": "0",  # do not log payloads that are parameters of slow statements
                "log_lock_waits": "1",
            },
        )

    def _proxy(self, vpc: ec2.IVpc, rules: AccessRules) -> rds.DatabaseProxy:
        """Create the proxy. It logs in to the database by IAM as the connecting user, so no password is stored."""
        return rds.DatabaseProxy(
            self,
            "Proxy",
            proxy_target=rds.ProxyTarget.from_instance(self.instance),
            db_proxy_name=self._env.prefix,
            default_auth_scheme=rds.DefaultAuthScheme.IAM_AUTH,
            iam_auth=True,
            require_tls=True,
            role=self._proxy_role(),
            max_connections_percent=90,
            vpc=vpc,
            vpc_subnets=DATABASE,
            security_groups=[self._fixed(rules.proxy)],
        )

    def _proxy_role(self) -> iam.Role:
        users = [
            login_arn(self, self.instance.instance_resource_id, role)
            for role in Role
            if role is not Role.OWNER
        ]
        role = iam.Role(self, "ProxyRole", assumed_by=iam.ServicePrincipal("rds.amazonaws.com"))
        role.add_to_policy(iam.PolicyStatement(actions=["rds-db:connect"], resources=users))
        return role

    def _fixed(self, group: ec2.SecurityGroup) -> ec2.ISecurityGroup:
        """Return the group as immutable: the proxy's construct would add rules to it."""
        return ec2.SecurityGroup.from_security_group_id(
            self, f"{group.node.id}Group", group.security_group_id, mutable=False
        )

    def _accept_findings(self) -> None:
        allow(
            self, "AwsSolutions-RDS11", "Security groups and TLS keep strangers out; another port would not."
        )
        if not self._env.database.multi_az:
            allow(
                self,
                "AwsSolutions-RDS3",
                "Set by database.multi_az, which costs the instance again: off in dev.",
            )
        if not self._env.database.keep_when_destroyed:
            allow(
                self,
                "AwsSolutions-RDS10",
                "Set by database.keep_when_destroyed: what dev holds may go with it.",
            )


def _engine() -> rds.IInstanceEngine:
    return rds.DatabaseInstanceEngine.postgres(version=rds.PostgresEngineVersion.VER_18)
