"""Secrets from AWS Secrets Manager, and login tokens for RDS (through botocore)."""

import functools
import json
import os
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

T = TypeVar("T")

SECRET_SECONDS = 300.0
RENEWAL_PAUSE_SECONDS = 10.0

_QUICKLY: dict[str, Any] = {"connect_timeout": 1, "read_timeout": 2, "retries": {"total_max_attempts": 2}}
"""A renewal blocks the process, which has the last value."""


def read_secret(arn: str) -> str:
    """Return the secret's text. Raises botocore's errors: without its secret a function cannot start."""
    return str(_client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"])


class RenewedSecret(Generic[T]):
    """A secret that is read again every SECRET_SECONDS, so that a process learns of a rotation.

    While Secrets Manager does not answer, or `parse` raises a ValueError for the new text, the last value stays, and
    `tell` receives the reason.
    """

    def __init__(self, arn: str, parse: Callable[[str], T], tell: Callable[[str], None]) -> None:
        self._arn = arn
        self._parse = parse
        self._tell = tell
        self._client = _client("secretsmanager", Config(**_QUICKLY))
        self._read_at = time.monotonic()
        self._value = self._read()

    def value(self, *, newer: bool = False) -> T:
        """Return the value. newer: read the secret again unless that was done RENEWAL_PAUSE_SECONDS ago."""
        age = time.monotonic() - self._read_at
        if age >= (RENEWAL_PAUSE_SECONDS if newer else SECRET_SECONDS):
            self._read_at = time.monotonic()
            try:
                self._value = self._read()
            except (BotoCoreError, ClientError, ValueError) as error:
                self._tell(f"{self._arn}: {error}")
        return self._value

    def _read(self) -> T:
        return self._parse(str(self._client.get_secret_value(SecretId=self._arn)["SecretString"]))


def database_url_from_secret(
    arn: str, *, host: str | None = None, port: int | None = None, dbname: str | None = None
) -> str:
    """Return the owner's libpq URL from an RDS secret: username, password, and optionally host, port and dbname.

    What is given takes precedence: a secret managed by RDS contains neither host nor database, and that of a cluster
    that other programs use names their database.
    """
    secret = cast(dict[str, Any], json.loads(read_secret(arn)))
    fields = {
        "host": host or secret.get("host"),
        "port": port or secret.get("port", 5432),
        "user": secret["username"],
        "password": secret["password"],
        "dbname": dbname or secret.get("dbname") or "hooksaga",
    }
    return " ".join(f"{name}='{_quoted(str(value))}'" for name, value in fields.items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def rds_login_token(host: str, port: int, user: str) -> str:
    """Create a password for IAM authentication, valid for 15 minutes. Makes no network call."""
    client = _rds_client(os.environ.get("AWS_DEFAULT_REGION"))
    return str(client.generate_db_auth_token(DBHostname=host, Port=port, DBUsername=user))


@functools.cache
def _rds_client(region: str | None) -> Any:
    """Cached, because creating a client takes far longer than signing. region None: botocore's default."""
    return cast(Any, botocore.session).get_session().create_client("rds", region_name=region)


def _client(service: str, config: Config | None = None) -> Any:
    return cast(Any, botocore.session).get_session().create_client(service, config=config)
