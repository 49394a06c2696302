"""Secrets from AWS Secrets Manager, and login tokens for RDS (through botocore)."""

import functools
import json
import os
from typing import Any, cast

import botocore.session


def read_secret(arn: str) -> str:
    """The secret's text. Raises botocore's errors: without its secret a function cannot start."""
    return str(_client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"])


def database_url_from_secret(arn: str, *, host: str | None = None, dbname: str | None = None) -> str:
    """A libpq URL of the owner, from a secret as RDS writes it: username, password, and often host, port, dbname.

    A secret that RDS keeps by itself names neither host nor database: then those given here are meant.
    """
    secret = cast(dict[str, Any], json.loads(read_secret(arn)))
    fields = {
        "host": secret.get("host") or host,
        "port": secret.get("port", 5432),
        "user": secret["username"],
        "password": secret["password"],
        "dbname": secret.get("dbname") or dbname or "hooksaga",
    }
    return " ".join(f"{name}='{_quoted(str(value))}'" for name, value in fields.items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def rds_login_token(host: str, port: int, user: str) -> str:
    """A password for IAM authentication, good for 15 minutes. Made on this side; nothing is called."""
    client = _rds_client(os.environ.get("AWS_DEFAULT_REGION"))
    return str(client.generate_db_auth_token(DBHostname=host, Port=port, DBUsername=user))


@functools.cache
def _rds_client(region: str | None) -> Any:
    """Kept, because to make one takes far longer than to sign. The region is botocore's own choice for None."""
    return cast(Any, botocore.session).get_session().create_client("rds", region_name=region)


def _client(service: str) -> Any:
    return cast(Any, botocore.session).get_session().create_client(service)
