"""How a function on AWS logs in: as its own role, with a fresh token, to a server whose name is proven."""

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import boto3
import botocore.session
import pytest
import trustme
from psycopg.conninfo import conninfo_to_dict

from hooksaga.adapters import aws_secrets
from hooksaga.adapters.aws_secrets import database_url_from_secret, rds_login_token, read_secret
from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session
from hooksaga.adapters.database_login import owner_conninfos, role_conninfo
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret, generate_key
from hooksaga.aws.function import function_address
from hooksaga.aws.sending_function import function_secret_box
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.settings import InvalidSettings, read_settings
from tests.sqs.conftest import new_name
from tests.sqs.postgres_login import LoginServer

pytestmark = pytest.mark.usefixtures("credentials")


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of a function: tokens are computed from them without a call."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(issuer: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issuer.issue_cert(name).configure_cert(context)
    return context


@pytest.fixture
def server(authority: trustme.CA) -> Iterator[LoginServer]:
    """Its certificate is for localhost."""
    with LoginServer(server_context(authority, "localhost")) as running:
        yield running


def address(port: int, host: str, ca_file: Path) -> DatabaseAddress:
    return function_address(read_settings(database_host=host, database_port=port, database_ca_file=ca_file))


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


async def nothing(_: Connection) -> None:
    raise AssertionError("nobody may log in")


async def log_in(where: DatabaseAddress, role: Role) -> None:
    session = Session(where, role)
    with pytest.raises(DatabaseUnavailable):
        await session.run(nothing)
    await session.close()


async def test_each_login_is_the_roles_own_with_a_token_of_its_own(
    server: LoginServer, ca_file: Path
) -> None:
    where = address(server.port, "localhost", ca_file)
    await log_in(where, Role.ROUTER)
    await log_in(where, Role.DELIVERY)
    assert [user for user, _ in server.logins] == ["router_worker", "job_worker"]
    for user, token in server.logins:
        host, _, query = token.partition("/?")
        signed = parse_qs(query)
        assert host == f"localhost:{server.port}"
        assert (signed["Action"], signed["DBUser"]) == (["connect"], [user])
        assert signed["X-Amz-Expires"] == ["900"]
        assert "/eu-west-1/rds-db/" in signed["X-Amz-Credential"][0]


def test_one_client_signs_all_tokens_of_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str | None] = []
    make = botocore.session.Session.create_client

    def counted(session: Any, service: str, region_name: str | None = None) -> Any:
        made.append(region_name)
        return make(session, service, region_name=region_name)

    monkeypatch.setattr(botocore.session.Session, "create_client", counted)
    for region in ("eu-south-1", "eu-south-1", "ap-south-1"):
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        assert f"%2F{region}%2Frds-db%2F" in rds_login_token("db.example", 5432, "router_worker")
    assert made == ["eu-south-1", "ap-south-1"]


async def test_a_server_of_another_name_gets_no_token(server: LoginServer, ca_file: Path) -> None:
    await log_in(address(server.port, "127.0.0.1", ca_file), Role.ROUTER)
    assert server.logins == []


async def test_a_server_of_another_authority_gets_no_token(ca_file: Path) -> None:
    with LoginServer(server_context(trustme.CA(), "localhost")) as impostor:
        await log_in(address(impostor.port, "localhost", ca_file), Role.ROUTER)
    assert impostor.logins == []


@pytest.mark.parametrize(("said", "prepares"), [({}, False), ({"prepared_statements": True}, True)])
def test_a_function_prepares_statements_only_where_no_proxy_is_in_between(
    said: dict[str, bool], prepares: bool
) -> None:
    assert function_address(read_settings(database_host="db.example", **said)).prepare is prepares


def test_without_a_bundle_the_systems_authorities_are_asked() -> None:
    where = function_address(read_settings(database_host="db.example"))
    given = conninfo_to_dict(role_conninfo(where, Role.ORCHESTRATOR))
    assert given["sslmode"] == "verify-full"
    assert given["sslrootcert"] == "system"
    assert (given["host"], given["dbname"], given["user"]) == ("db.example", "hooksaga", "saga_orchestrator")


@pytest.mark.database
async def test_a_new_connection_takes_a_new_token(database_address: DatabaseAddress) -> None:
    minted: list[str] = []

    def mint(user: str) -> str:
        minted.append(user)
        return f"token-{len(minted)}"

    session = Session(DatabaseAddress(database_address.url, mint_password=mint), Role.ROUTER)
    for _ in range(2):
        await session.run(_who)
        await session.run(_who)
        await session.close()
    assert minted == ["router_worker", "router_worker"]


async def _who(connection: Connection) -> None:
    answer = await (await connection.execute("SELECT current_user")).fetchone()
    assert answer == ("router_worker",)


@pytest.mark.sqs
def test_the_owner_logs_in_by_the_secret_that_rds_wrote(aws_environment: str) -> None:
    password = r"""it's a \ "pass word"""
    client: Any = boto3.client("secretsmanager")
    fields = {"host": "db.example", "port": 6543, "username": "hooks owner", "password": password}
    arn = client.create_secret(Name=new_name("rds"), SecretString=json.dumps(fields))["ARN"]
    given = conninfo_to_dict(database_url_from_secret(arn))
    assert (given["host"], given["port"], given["dbname"]) == ("db.example", "6543", "hooksaga")
    assert (given["user"], given["password"]) == ("hooks owner", password)
    where = function_address(read_settings(database_secret_arn=arn, database_host="db.example"))
    assert conninfo_to_dict(where.url)["sslmode"] == "verify-full"
    by_token, by_password = map(conninfo_to_dict, owner_conninfos(where))
    assert by_password["password"] == password
    assert str(by_token["password"]).startswith("db.example:6543/?Action=connect&DBUser=hooks%20owner&")
    assert {**by_token, "password": ""} == {**by_password, "password": ""}


@pytest.mark.sqs
def test_given_settings_take_precedence_over_the_secret_of_a_shared_cluster(aws_environment: str) -> None:
    client: Any = boto3.client("secretsmanager")
    fields = {"host": "c.example", "port": 5432, "dbname": "shop", "username": "master", "password": "p"}
    arn = client.create_secret(Name=new_name("rds"), SecretString=json.dumps(fields))["ARN"]

    def address_with(**given: Any) -> tuple[Any, ...]:
        url = conninfo_to_dict(function_address(read_settings(database_secret_arn=arn, **given)).url)
        return url["host"], url["port"], url["dbname"]

    assert address_with() == ("c.example", "5432", "shop")
    chosen = {"database_host": "d.example", "database_port": 6543, "database_name": "hooksaga"}
    assert address_with(**chosen) == ("d.example", "6543", "hooksaga")


@pytest.mark.sqs
def test_the_keys_of_signing_secrets_come_from_a_secret(aws_environment: str) -> None:
    client: Any = boto3.client("secretsmanager")
    new, old = generate_key(), generate_key()
    arn = client.create_secret(Name=new_name("keys"), SecretString=f"{new}, {old}")["ARN"]
    assert read_secret(arn) == f"{new}, {old}"
    box = function_secret_box(read_settings(secrets_key_arn=arn))
    assert box.open(SecretBox([old]).seal("whsec_x")) == "whsec_x"
    assert SecretBox([new]).open(box.seal("whsec_y")) == "whsec_y"


@dataclass
class Rotated:
    """A secret with keys in the emulator, the box of a function that reads it, and its clock."""

    client: Any
    arn: str
    box: SecretBox
    now: float

    def rotate(self, *keys: str) -> None:
        self.client.put_secret_value(SecretId=self.arn, SecretString=",".join(keys))


OLD, NEW = generate_key(), generate_key()


@pytest.fixture
def rotated(aws_environment: str, monkeypatch: pytest.MonkeyPatch) -> Rotated:
    client: Any = boto3.client("secretsmanager")
    arn = client.create_secret(Name=new_name("keys"), SecretString=OLD)["ARN"]
    monkeypatch.setattr(aws_secrets, "time", SimpleNamespace(monotonic=lambda: made.now))
    made = Rotated(client, arn, SecretBox([OLD]), 1000.0)
    made.box = function_secret_box(read_settings(secrets_key_arn=arn))
    return made


@pytest.mark.sqs
def test_a_rotated_key_is_used_without_a_restart(rotated: Rotated) -> None:
    rotated.rotate(NEW, OLD)
    assert SecretBox([OLD]).open(rotated.box.seal("young")) == "young"
    rotated.now += aws_secrets.SECRET_SECONDS
    assert SecretBox([NEW]).open(rotated.box.seal("x")) == "x"
    assert SecretBox([NEW]).for_purpose("p").open(rotated.box.for_purpose("p").seal("x")) == "x"
    assert rotated.box.open(SecretBox([OLD]).seal("y")) == "y"


@pytest.mark.sqs
@pytest.mark.parametrize("purpose", [None, "headers"])
def test_a_value_under_a_newer_key_is_read_at_once(rotated: Rotated, purpose: str | None) -> None:
    """Another function has learned of the key before."""
    ours, others = rotated.box, SecretBox([NEW])
    if purpose:
        ours, others = ours.for_purpose(purpose), others.for_purpose(purpose)
        assert ours.open(SecretBox([OLD]).for_purpose(purpose).seal("x")) == "x"
    rotated.rotate(NEW, OLD)
    rotated.now += aws_secrets.RENEWAL_PAUSE_SECONDS
    assert ours.open(others.seal("whsec")) == "whsec"


@pytest.mark.sqs
def test_a_damaged_value_does_not_read_the_secret_each_time(rotated: Rotated) -> None:
    rotated.now += aws_secrets.RENEWAL_PAUSE_SECONDS
    with pytest.raises(UnreadableSecret):
        rotated.box.open("damaged")
    rotated.rotate(NEW)
    with pytest.raises(UnreadableSecret):
        rotated.box.open(SecretBox([NEW]).seal("x"))
    rotated.now += aws_secrets.RENEWAL_PAUSE_SECONDS
    assert rotated.box.open(SecretBox([NEW]).seal("x")) == "x"


@pytest.mark.sqs
@pytest.mark.parametrize("fault", ["not a key", "", "deleted"])
def test_keys_stay_while_no_others_can_be_read(
    rotated: Rotated, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    if fault == "deleted":
        rotated.client.delete_secret(SecretId=rotated.arn, ForceDeleteWithoutRecovery=True)
    else:
        rotated.rotate(fault or ",")
    rotated.now += aws_secrets.SECRET_SECONDS
    assert SecretBox([OLD]).open(rotated.box.seal("x")) == "x"
    (record,) = caplog.records
    assert (record.message, record.levelname) == ("secret not renewed", "ERROR")
    assert OLD not in str(vars(record))


def test_a_function_without_database_or_keys_says_which_variable_is_missing() -> None:
    with pytest.raises(InvalidSettings, match="HOOKSAGA_DATABASE_URL"):
        function_address(read_settings(database_url=None))
    with pytest.raises(InvalidSettings, match="HOOKSAGA_SECRETS_KEY"):
        function_secret_box(read_settings(secrets_key=None))
