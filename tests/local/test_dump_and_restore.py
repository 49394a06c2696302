"""The steps of docs/operations/database.md, with the programs that the embedded PostgreSQL brings: dump, restore to
another server, and prove that nothing was lost. A server where its owner is no superuser, as on RDS, is one of them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.session_settings import FUNCTIONS
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.audit import audit
from tests.database.seed import Seed
from tests.local.restored import DUMP, RESTORE, command, dump_of, new_server, restore

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


PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "database.md"


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
def other_server() -> Iterator[dict[str, str]]:
    with new_server() as urls:
        yield urls


@pytest.fixture
async def source(database_address: DatabaseAddress, seed: Seed) -> str:
    """A database with something of everything, and some of it pruned."""
    for status in SagaStatus:
        await seed.saga(status)
    await seed.event_for(await seed.subscription())
    await seed.make_old(await seed.saga(SagaStatus.COMPLETED))
    assert await prune(database_address.url) == 1
    return database_address.url


async def prune(url: str) -> int:
    done = await asyncio.to_thread(command, url, "prune", "--older-than", "30d", "--json")
    return json.loads(done)["sagas"]


@pytest.mark.parametrize("login", ["postgres", "master"], ids=["superuser", "as-on-rds"])
async def test_a_dump_is_restored_to_another_server(
    source: str, seed: Seed, other_server: dict[str, str], login: str, tmp_path: Path
) -> None:
    dump = dump_of(source, tmp_path)
    before = contents(source)
    target = other_server[login]
    await asyncio.to_thread(restore, dump, target)
    assert set(stated(target)) == {role.value for role in Role if role is not Role.OWNER}
    assert all(len(FUNCTIONS) <= settings for settings in stated(target).values())
    assert contents(target) == before
    await asyncio.to_thread(command, target, "audit")
    doctor = ("doctor", "--port", "65000")
    await asyncio.to_thread(command, target, *doctor, HOOKSAGA_SECRETS_KEY=seed.secrets_key)
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
