"""The steps of docs/operations/database.md, with the programs that the embedded PostgreSQL brings: dump, restore to
another server, and prove that nothing was lost. A server where its owner is no superuser, as on RDS, is one of them."""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from infra.local.postgres import EmbeddedPostgres
from infra.local.postgres_build import binaries
from shared.adapters.database import DatabaseAddress, Role
from shared.adapters.session_settings import FUNCTIONS
from shared.core.saga import SagaStatus
from shared.stages.audit import audit
from tests.cli.conftest import runner_with
from tests.database.seed import Seed

TABLES = (
    "events",
    "routing_outbox",
    "subscriptions",
    "subscription_secrets",
    "webhook_delivery_sagas",
    "webhook_delivery_jobs",
    "dead_letters",
    "api_keys",
    "retention_state",
)


def tool(name: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run(
        [str(binaries() / name), *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "database.md"
DUMP = ("--format=custom",)
RESTORE = ("--clean", "--if-exists", "--no-owner", "--single-transaction")


def test_the_page_says_what_is_tested_here() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"pg_dump {' '.join(DUMP)} " in page
    assert f"pg_restore {' '.join(RESTORE)} --use-list=chosen " in page
    assert "pg_restore --list hooksaga.dump | grep -v 'DEFAULT ACL' > chosen" in page


def contents(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(
                sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(table))
            ).fetchall()
            for table in TABLES
        }


def stated(url: str) -> dict[str, int]:
    """How many settings of each role no other default of this database overrules: no dump carries them."""
    query = (
        "SELECT r.rolname, cardinality(s.setconfig) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole"
        " JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()"
    )
    with psycopg.connect(url) as connection:
        return dict(connection.execute(query).fetchall())


@pytest.fixture
def other_server() -> Iterator[str]:
    """A server that has never heard of hooksaga: an empty database of each login's, and no role of ours."""
    folder = Path(tempfile.mkdtemp(prefix=f"hooksaga-tests-{os.getpid()}-"))
    server = EmbeddedPostgres(folder)
    try:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE master LOGIN CREATEROLE CREATEDB")
            connection.execute("CREATE DATABASE of_postgres OWNER postgres")
            connection.execute("CREATE DATABASE of_master OWNER master")
        yield url
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def source(database_address: DatabaseAddress, seed: Seed) -> str:
    """A database with something of everything, and some of it pruned."""
    for status in SagaStatus:
        await seed.saga(status)
    await seed.event_for(await seed.subscription())
    await seed.make_old(await seed.saga(SagaStatus.COMPLETED))
    assert await prune(database_address.url) == 1
    return database_address.url


async def command(url: str, *arguments: str, **settings: str) -> str:
    """What a command prints; it has to be good."""
    run = runner_with({"HOOKSAGA_DATABASE_URL": url, **settings})
    result = await asyncio.to_thread(run, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


async def prune(url: str) -> int:
    return json.loads(await command(url, "prune", "--older-than", "30d", "--json"))["sagas"]


@pytest.mark.parametrize("login", ["postgres", "master"], ids=["superuser", "as-on-rds"])
async def test_a_dump_is_restored_to_another_server(
    source: str, seed: Seed, other_server: str, login: str, tmp_path: Path
) -> None:
    dump, chosen = tmp_path / "hooksaga.dump", tmp_path / "chosen"
    tool("pg_dump", *DUMP, f"--file={dump}", source)
    before = contents(source)

    target = make_conninfo(other_server, user=login, dbname=f"of_{login}")
    await command(target, "migrate")
    listed = tool("pg_restore", "--list", str(dump))
    chosen.write_text("\n".join(line for line in listed.splitlines() if "DEFAULT ACL" not in line))
    tool("pg_restore", *RESTORE, f"--use-list={chosen}", f"--dbname={target}", str(dump))
    assert await command(target, "migrate") == "nothing to do: the schema is up to date\n"

    assert set(stated(target)) == {role.value for role in Role if role is not Role.OWNER}
    assert all(len(FUNCTIONS) <= settings for settings in stated(target).values())
    assert contents(target) == before
    await command(target, "audit")
    await command(target, "doctor", "--port", "65000", HOOKSAGA_SECRETS_KEY=seed.secrets_key)
    await goes_on(make_conninfo(target, user="postgres"))


async def goes_on(url: str) -> None:
    """New work gets new ids, guards refuse, and old work can still be pruned."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        seed = Seed(connection)
        await seed.make_old(await seed.saga(SagaStatus.COMPLETED))
        assert await prune(url) == 1
        with pytest.raises(psycopg.Error) as refused:
            await connection.execute("UPDATE events SET event_type = 'other'")
        assert refused.value.sqlstate == "HS001"
        assert [finding for finding in await audit(connection) if finding.rows] == []
