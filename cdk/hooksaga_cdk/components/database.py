"""PostgreSQL 18 on RDS, which stores all state, and optionally RDS Proxy in front of it."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import Duration, Fn, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_rds as rds
from constructs import Construct

from hooksaga.adapters.database import Role
from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.database_access import OWNER, RdsDatabase, Server, login_arn
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.place import Places

NAME = "hooksaga"
PORT = 5432


class Database(Construct):
    """`access` is how functions log in. RDS creates and rotates the owner's password."""

    def __init__(self, scope: Construct, name: str, env: Environment, places: Places) -> None:
        super().__init__(scope, name)
        self._env, self._places = env, places
        self.instance = self._instance()
        self._accept_findings()
        self.access = self._access()

    def _access(self) -> RdsDatabase:
        instance, secret = self.instance, self.instance.secret
        assert secret is not None, "RDS keeps the owner's password in a secret"
        direct = Server(instance.db_instance_endpoint_address, instance.instance_resource_id)
        group = self._places.rules.proxy
        if group is None:
            return RdsDatabase(direct, direct, secret, NAME, PORT)
        proxy = self._proxy(group)
        # The ARN of a proxy ends with the id that its logins name.
        proxy_id = Fn.select(6, Fn.split(":", proxy.db_proxy_arn))
        return RdsDatabase(direct, Server(proxy.endpoint, proxy_id), secret, NAME, PORT)

    def _instance(self) -> rds.DatabaseInstance:
        wanted = self._env.database
        keep = wanted.keep_when_destroyed
        return rds.DatabaseInstance(
            self,
            "Instance",
            engine=_engine(),
            instance_type=ec2.InstanceType(wanted.instance_class),
            database_name=NAME,
            port=PORT,
            credentials=rds.Credentials.from_username(OWNER),
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
            vpc=self._places.vpc,
            vpc_subnets=self._places.subnets.database,
            security_groups=[self._fixed("Database", self._places.rules.database)],
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

    def _proxy(self, group: ec2.ISecurityGroup) -> rds.DatabaseProxy:
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
            vpc=self._places.vpc,
            vpc_subnets=self._places.subnets.database,
            security_groups=[self._fixed("Proxy", group)],
        )

    def _proxy_role(self) -> iam.Role:
        users = [
            login_arn(self, self.instance.instance_resource_id, role.value)
            for role in Role
            if role is not Role.OWNER
        ]
        role = iam.Role(self, "ProxyRole", assumed_by=iam.ServicePrincipal("rds.amazonaws.com"))
        role.add_to_policy(iam.PolicyStatement(actions=["rds-db:connect"], resources=users))
        return role

    def _fixed(self, name: str, group: ec2.ISecurityGroup) -> ec2.ISecurityGroup:
        """Return the group as immutable: the proxy's construct would add rules to it."""
        return ec2.SecurityGroup.from_security_group_id(
            self, f"{name}Group", group.security_group_id, mutable=False
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
