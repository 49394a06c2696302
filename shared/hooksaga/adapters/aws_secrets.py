"""Secrets from AWS Secrets Manager, and login tokens for RDS (through botocore)."""

import functools
import json
import os
from typing import Any, cast

import botocore.session


def read_secret(arn: str) -> str:
    """Return the secret's text. Raises botocore's errors: without its secret a function cannot start."""
    return str(_client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"])


def database_url_from_secret(arn: str, *, host: str | None = None, dbname: str | None = None) -> str:
    """Return the owner's libpq URL from an RDS secret: username, password, and optionally host, port and dbname.

    A secret managed by RDS contains neither host nor database; `host` and `database` apply then.
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
    """Create a password for IAM authentication, valid for 15 minutes. Makes no network call."""
    client = _rds_client(os.environ.get("AWS_DEFAULT_REGION"))
    return str(client.generate_db_auth_token(DBHostname=host, Port=port, DBUsername=user))


@functools.cache
def _rds_client(region: str | None) -> Any:
    """Cached, because creating a client takes far longer than signing. region None: botocore's default."""
    return cast(Any, botocore.session).get_session().create_client("rds", region_name=region)


def _client(service: str) -> Any:
    return cast(Any, botocore.session).get_session().create_client(service)
