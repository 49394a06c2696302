"""Address and login of the database for functions: as a user with an IAM token, or by a given URL."""

from dataclasses import dataclass
from typing import Protocol

from aws_cdk import Stack, Tokenization
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import IConstruct

from hooksaga.adapters.database import Role
from hooksaga_cdk.bundling import CERTIFICATES

OWNER = "hooksaga_owner"


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


@dataclass(frozen=True, slots=True)
class Server:
    """A database instance, cluster or proxy. `resource_id` is the part of its ARN that IAM logins name."""

    host: str
    resource_id: str


@dataclass(frozen=True, slots=True)
class RdsDatabase:
    """A database of RDS or Aurora. Functions log in to `functions` as their own users by IAM. The owner logs in to
    `direct`, by IAM too, or with the secret (decision 101): a proxy may be in front for the others only."""

    direct: Server
    functions: Server
    secret: secretsmanager.ISecret
    name: str
    port: float
    """A number, or a token of the CDK for one."""
    owner: str = OWNER

    def environment(self, role: Role) -> dict[str, str]:
        variables = {
            "HOOKSAGA_DATABASE_HOST": self._server(role).host,
            "HOOKSAGA_DATABASE_PORT": Tokenization.stringify_number(self.port),
            "HOOKSAGA_DATABASE_NAME": self.name,
            "HOOKSAGA_DATABASE_CA_FILE": f"/var/task/{CERTIFICATES.name}",
        }
        if role is Role.OWNER:
            variables["HOOKSAGA_DATABASE_SECRET_ARN"] = self.secret.secret_arn
        elif (
            self.functions == self.direct
        ):  # a proxy keeps a connection for each client with a prepared statement
            variables["HOOKSAGA_PREPARED_STATEMENTS"] = "true"
        return variables

    def allow_login(self, function: iam.Role, role: Role) -> None:
        user = self.owner if role is Role.OWNER else role.value
        arn = login_arn(function, self._server(role).resource_id, user)
        function.add_to_principal_policy(iam.PolicyStatement(actions=["rds-db:connect"], resources=[arn]))
        if role is Role.OWNER:
            self.secret.grant_read(function)

    def _server(self, role: Role) -> Server:
        return self.direct if role is Role.OWNER else self.functions


def login_arn(scope: IConstruct, resource_id: str, user: str) -> str:
    """Return the ARN of one user of a database or proxy, for `rds-db:connect`."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:rds-db:{stack.region}:{stack.account}:dbuser:{resource_id}/{user}"
