"""libpq's environment and defaults of roles have no effect on a session, or cause an error."""

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session, fetch_dicts
from hooksaga.adapters.database_login import role_conninfo, role_password
from hooksaga.adapters.libpq import complete, conninfo
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.session_settings import FUNCTIONS, GUARDED, of_role
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.event_input import EventDraft
from hooksaga.local.system import database_address
from hooksaga.runtime.settings import read_settings
from hooksaga.stages.accept_events import AcceptedEvent, accept_events

OTHERS = ("PGDATESTYLE", "PGTZ", "PGGEQO", "PGREQUIRESSL", "PGSERVICEFILE", "PGSYSCONFDIR", "PGLOCALEDIR")
"""Variables of libpq that go with no parameter of a connection string."""

VARIABLES = sorted(
    {option.envvar.decode() for option in psycopg.pq.Conninfo.get_defaults() if option.envvar} | {*OTHERS}
)

HOSTILE = {
    "PGOPTIONS": "-c search_path=pg_temp -c datestyle=German -c default_transaction_read_only=on",
    "PGDATESTYLE": "German, DMY",
    "PGTZ": "Mars/Olympus",
    "PGHOSTADDR": "127.0.0.1",
    "PGPORT": "1",
    "PGSSLMODE": "verify-full",
    "PGSSLNEGOTIATION": "direct",
    "PGREQUIRESSL": "1",
    "PGGSSENCMODE": "require",
    "PGCHANNELBINDING": "require",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGTARGETSESSIONATTRS": "standby",
    "PGCLIENTENCODING": "LATIN1",
}
"""What makes the most of them; all others are given a word that is nonsense to them."""

LEAD_ELSEWHERE = (
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGDATABASE",
    "PGUSER",
    "PGSERVICE",
    "PGOPTIONS",
    "PGAPPNAME",
    "PGCLIENTENCODING",
    "PGCONNECT_TIMEOUT",
    "PGTARGETSESSIONATTRS",
    "PGLOADBALANCEHOSTS",
    "PGDATESTYLE",
    "PGTZ",
    "PGGEQO",
)
"""Where a URL says where to go, these say nothing. The others say how to log in and how to encrypt."""


async def facts(connection: Connection) -> dict[str, object]:
    query = (
        "SELECT current_user::text AS who, current_schema()::text AS schema, current_setting('datestyle') AS dates,"
        " current_setting('timezone') AS zone, current_setting('geqo') AS geqo,"
        " current_setting('transaction_read_only') AS read_only, current_setting('client_encoding') AS encoding,"
        " current_setting('application_name') AS application"
    )
    (row,) = await fetch_dicts(connection, query, {})
    return row


async def sessions_see(address: DatabaseAddress) -> list[dict[str, object]]:
    seen: list[dict[str, object]] = []
    for role in (Role.OWNER, Role.ROUTER):
        session = Session(address, role)
        try:
            seen.append(await session.run(facts))
        finally:
            await session.close()
    return seen


@pytest.fixture(scope="module")
def migrated(test_server: str, maintenance: psycopg.Connection) -> Iterator[DatabaseAddress]:
    """A database for all of these, with the settings of its roles stated, which a copy does not carry."""
    maintenance.execute("CREATE DATABASE surroundings TEMPLATE hooksaga STRATEGY file_copy")
    address = DatabaseAddress(make_conninfo(test_server, dbname="surroundings"))
    migrate(address)
    yield address
    maintenance.execute("DROP DATABASE surroundings WITH (FORCE)")


@pytest.fixture
def owner(migrated: DatabaseAddress) -> Iterator[psycopg.Connection]:
    """A superuser's connection to it."""
    with psycopg.connect(migrated.url, autocommit=True) as connection:
        yield connection


def count(owner: psycopg.Connection, table: LiteralString) -> int:
    return owner.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchall()[0][0]


@pytest.mark.parametrize("variable", [*VARIABLES, "all"])
async def test_no_variable_of_libpq_reaches_a_client_of_the_embedded_server(
    migrated: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    embedded = replace(migrated, url=complete(migrated.url))
    undisturbed = await sessions_see(embedded)
    assert [seen["who"] for seen in undisturbed] == ["postgres", Role.ROUTER]
    for name in VARIABLES if variable == "all" else [variable]:
        monkeypatch.setenv(name, HOSTILE.get(name, "nonsense"))
    assert await sessions_see(embedded) == undisturbed
    assert variable != "all" or migrate(embedded) == []


def test_the_embedded_server_is_asked_in_no_other_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(
        "hooksaga.local.system.EmbeddedPostgres.start", lambda _: "postgresql://postgres@/hooksaga?host=/s"
    )
    address, _ = database_address(read_settings(data_dir=tmp_path_factory.mktemp("data")))
    said = conninfo_to_dict(address.url)
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults() if option.envvar}
    assert known - said.keys() == {"service"}


@pytest.mark.parametrize("variable", [*LEAD_ELSEWHERE, "all"])
async def test_no_variable_leads_a_url_elsewhere(
    migrated: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    undisturbed = await sessions_see(migrated)
    for name in LEAD_ELSEWHERE if variable == "all" else [variable]:
        monkeypatch.setenv(name, HOSTILE.get(name, "nonsense"))
    assert await sessions_see(migrated) == undisturbed
    assert variable != "all" or migrate(migrated) == []


@pytest.mark.parametrize(
    ("variable", "value", "parameter"),
    [
        ("PGSSLMODE", "verify-full", "sslmode"),
        ("PGSSLROOTCERT", "/ca.pem", "sslrootcert"),
        ("PGPASSFILE", "/passes", "passfile"),
        ("PGREQUIREAUTH", "scram-sha-256", "require_auth"),
        ("PGPORT", "6432", "port"),
        ("PGHOSTADDR", "192.0.2.1", "hostaddr"),
    ],
)
def test_what_a_url_does_not_say_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, parameter: str
) -> None:
    """How to encrypt, and where, if the URL does not say so: a demand for TLS is never dropped."""
    monkeypatch.setenv(variable, value)
    made = conninfo_to_dict(role_conninfo(DatabaseAddress("postgresql:///hooksaga"), Role.ROUTER))
    assert parameter not in made
    assert os.environ[variable] == value


def test_a_password_from_the_environment_is_the_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """The roles' are derived from it, as from one in the URL."""
    monkeypatch.setenv("PGPASSWORD", "secret")
    address = DatabaseAddress("postgresql://owner@db.example/hooksaga")
    made = conninfo_to_dict(role_conninfo(address, Role.ROUTER))
    assert made["password"] == role_password("secret", Role.ROUTER)
    stated = replace(address, url="postgresql://owner:other@db.example/hooksaga")
    assert conninfo_to_dict(role_conninfo(stated, Role.ROUTER))["password"] == role_password(
        "other", Role.ROUTER
    )


def test_of_several_hosts_the_primary_is_meant() -> None:
    one, several = "postgresql://a/hooksaga", "postgresql://a,b/hooksaga"
    assert conninfo_to_dict(conninfo(one))["target_session_attrs"] == "any"
    assert conninfo_to_dict(conninfo(several))["target_session_attrs"] == "primary"
    said = conninfo_to_dict(conninfo(f"{several}?target_session_attrs=read-write"))
    assert said["target_session_attrs"] == "read-write"


async def test_options_of_the_url_are_passed_on_and_overrule_nothing_that_is_stated(
    migrated: DatabaseAddress,
) -> None:
    options = "-c search_path=pg_catalog -c datestyle=German -c work_mem=5MB"
    session = Session(replace(migrated, url=make_conninfo(migrated.url, options=options)), Role.INGEST)
    query = "SELECT current_setting('work_mem') AS memory, current_schema()::text AS schema"
    (row,) = await session.run(lambda connection: fetch_dicts(connection, query, {}))
    assert row == {"memory": "5MB", "schema": "public"}
    (event,) = await session.run(lambda connection: accept_events(connection, [EventDraft("a", "{}")]))
    assert isinstance(event, AcceptedEvent)
    await session.close()


# Defaults of roles and databases. That all of them at once change nothing is in tests/e2e/test_hostile_defaults.py.


async def test_each_setting_is_stated_for_each_role(
    migrated: DatabaseAddress, owner: psycopg.Connection
) -> None:
    """Stronger than any default of the database, and of the role on the whole server."""
    names = [*FUNCTIONS, *GUARDED]
    opposite = {"on": "off", "off": "on"}
    for name, value in {**FUNCTIONS, **GUARDED}.items():
        if value in opposite:
            owner.execute(f"ALTER DATABASE surroundings SET {name} = {opposite[value]}".encode())
    query = "SELECT name, current_setting(name) AS value FROM unnest(%(names)s::text[]) AS stated (name)"
    try:
        roles = [one for one in Role if one is not Role.OWNER]
        assert roles
        for role in roles:
            session = Session(migrated, role)
            rows = await session.run(lambda connection: fetch_dicts(connection, query, {"names": names}))
            assert {row["name"]: row["value"] for row in rows} == {**of_role(role.value), **GUARDED}
            await session.close()
    finally:
        owner.execute("ALTER DATABASE surroundings RESET ALL")


@pytest.fixture
async def session(migrated: DatabaseAddress) -> AsyncIterator[Session]:
    session = Session(migrated, Role.INGEST)
    yield session
    await session.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("search_path", "app, public"),
        ("search_path", '"$user"'),
        ("datestyle", "'SQL, DMY'"),
        ("intervalstyle", "iso_8601"),
        ("extra_float_digits", "0"),
        ("array_nulls", "off"),
        ("standard_conforming_strings", "off"),
        ("transform_null_equals", "on"),
        ("exit_on_error", "on"),
        ("session_replication_role", "replica"),
        ("role", "event_reader"),
    ],
)
async def test_a_setting_that_is_overruled_for_the_role_itself_is_said_and_migrate_sets_it_back(
    session: Session, migrated: DatabaseAddress, owner: psycopg.Connection, setting: str, value: str
) -> None:
    """Such a setting has the highest precedence, so the session refuses to work."""
    owner.execute("CREATE SCHEMA IF NOT EXISTS app")
    owner.execute("GRANT USAGE ON SCHEMA app TO PUBLIC")
    owner.execute("CREATE ROLE event_reader")
    owner.execute("GRANT event_reader TO event_ingest_writer")
    try:
        change = f"ALTER ROLE event_ingest_writer IN DATABASE surroundings SET {setting} = {value}"
        owner.execute(change.encode())
        before = count(owner, "events")
        with pytest.raises(
            DatabaseUnavailable, match=f"event_ingest_writer .*{setting} = .*hooksaga migrate"
        ):
            await session.run(lambda connection: accept_events(connection, [EventDraft("a", "{}")]))
        assert count(owner, "events") == before
        assert migrate(migrated) == []
        await session.run(lambda connection: accept_events(connection, [EventDraft("a", "{}")]))
        assert count(owner, "routing_outbox") == before + 1
    finally:
        owner.execute("DROP ROLE event_reader")


async def test_who_says_that_it_must_not_be_written_is_taken_at_its_word(
    session: Session, migrated: DatabaseAddress, owner: psycopg.Connection
) -> None:
    """A server after a failover, or one whose disk is nearly full: nothing is stated against that."""
    owner.execute("ALTER DATABASE surroundings SET default_transaction_read_only = on")
    try:
        with pytest.raises(DatabaseUnavailable, match="read-only"):
            await session.run(lambda connection: accept_events(connection, [EventDraft("a", "{}")]))
    finally:
        owner.execute("SET default_transaction_read_only = off")
        owner.execute("ALTER DATABASE surroundings RESET default_transaction_read_only")
