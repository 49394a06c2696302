"""Address and login of the database for functions: as a user with an IAM token, or by a given URL."""

from typing import Protocol

from aws_cdk import Fn, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_rds as rds
from constructs import IConstruct

from hooksaga.adapters.database import Role
from infra.bundling import CERTIFICATES


class DatabaseAccess(Protocol):
    def environment(self, role: Role) -> dict[str, str]: ...

    def allow_login(self, function: iam.Role, role: Role) -> None: ...


class GivenDatabase:
    """An existing database, by its owner's URL. For emulators: the template contains the URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def environment(self, role: Role) -> dict[str, str]:
        return {"HOOKSAGA_DATABASE_URL": self._url}

    def allow_login(self, function: iam.Role, role: Role) -> None:
        """Do nothing: the URL contains the password."""


class RdsDatabase:
    """Functions log in as their own users by IAM, through the proxy if there is one. The owner bypasses it, with a
    secret."""

    def __init__(
        self, instance: rds.DatabaseInstance, proxy: rds.DatabaseProxy | None, database_name: str
    ) -> None:
        self._instance = instance
        self._proxy = proxy
        self._name = database_name

    def environment(self, role: Role) -> dict[str, str]:
        variables = {
            "HOOKSAGA_DATABASE_HOST": self._host(role),
            "HOOKSAGA_DATABASE_NAME": self._name,
            "HOOKSAGA_DATABASE_CA_FILE": f"/var/task/{CERTIFICATES.name}",
        }
        if role is Role.OWNER:
            variables["HOOKSAGA_DATABASE_SECRET_ARN"] = self._secret_arn
        return variables

    def _host(self, role: Role) -> str:
        if self._proxy is None or role is Role.OWNER:
            return self._instance.db_instance_endpoint_address
        return self._proxy.endpoint

    def allow_login(self, function: iam.Role, role: Role) -> None:
        actions, resource = ["rds-db:connect"], self._user_arn(role)
        if role is Role.OWNER:
            actions, resource = ["secretsmanager:GetSecretValue"], self._secret_arn
        function.add_to_principal_policy(iam.PolicyStatement(actions=actions, resources=[resource]))

    @property
    def _secret_arn(self) -> str:
        secret = self._instance.secret
        assert secret is not None, "RDS keeps the owner's password in a secret"
        return secret.secret_arn

    def _user_arn(self, role: Role) -> str:
        """The ARN for the proxy contains the user's name too, and ends with the proxy's id."""
        if self._proxy is None:
            resource_id = self._instance.instance_resource_id
        else:
            resource_id = Fn.select(6, Fn.split(":", self._proxy.db_proxy_arn))
        return login_arn(self._instance, str(resource_id), role)


def login_arn(scope: IConstruct, resource_id: str, role: Role) -> str:
    """Return the ARN of one user of a database or proxy, for `rds-db:connect`."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:rds-db:{stack.region}:{stack.account}:dbuser:{resource_id}/{role}"
