"""Each later migration, tried on rows in every state that the version before has written."""

import asyncio
import os
import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from docs.generators.schema_file import SCHEMA_FILE, schema_text
from hooksaga.adapters.database import DatabaseAddress, Role, connect_as
from hooksaga.adapters.migrations import SQL_DIR, migrate
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import requeue
from hooksaga.operations.audit import audit
from hooksaga.stages.route_events import route_events
from tests.conftest import OTHER_POSTGRES
from tests.database import orchestrate
from tests.database.bulk_rows import requeue_of, started
from tests.database.later import first_schema, plant
from tests.database.seed import POLICY, Seed
from tests.local.restored import new_server

TABLES = (
    *("events", "routing_outbox", "subscriptions", "subscription_secrets", "subscription_history"),
    *("webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters", "routing_decisions"),
    *("bulk_operations", "bulk_operation_lanes", "subscription_health", "work_state", "retention_state"),
)

PLANTED = """
ALTER TABLE webhook_delivery_sagas ADD COLUMN region text;
-- load: functions/refuse_row.sql
GRANT SELECT (region) ON webhook_delivery_sagas TO router_worker;
"""
"""A function that it loads is planted with it, with other words."""


@pytest.fixture
def addresses(
    test_server: str, maintenance: psycopg.Connection
) -> Iterator[tuple[DatabaseAddress, DatabaseAddress]]:
    """Two databases that nobody migrated: one for the version before, one for the new one from nothing."""
    names = ("before", "new")
    for name in names:
        maintenance.execute(f"CREATE DATABASE upgrade_{name}".encode())
    yield tuple(DatabaseAddress(make_conninfo(test_server, dbname=f"upgrade_{name}")) for name in names)  # type: ignore[misc]
    for name in names:
        maintenance.execute(f"DROP DATABASE upgrade_{name} WITH (FORCE)".encode())


async def write_rows_in_every_state(seed: Seed) -> None:
    for status in SagaStatus:
        await seed.saga(status)
    await seed.event_for(await seed.subscription())
    await seed.subscription(verified=False, headers={"x-token": "secret"})
    await seed.job()
    await seed.claim(await seed.job())
    await seed.finish(await seed.job())
    await seed.finish(await seed.job(), "http_503")
    await orchestrate.cancel_saga(seed.connection, POLICY, await seed.saga())
    await requeue.requeue_one(seed.connection, await seed.dead_letter())
    await seed.dead_letter()
    await started(seed.connection, requeue_of())


async def counts(seed: Seed) -> dict[str, int]:
    return {table: await seed.value(f"SELECT count(*) FROM {table}".encode()) for table in TABLES}  # type: ignore[arg-type]


async def go_on(seed: Seed) -> None:
    """Route, attempt and finish all waiting work."""
    await route_events(seed.connection)
    await orchestrate.apply_results(seed.connection, POLICY)
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() WHERE status = 'PendingRetry'"
    )
    await orchestrate.start_all(seed.connection, POLICY)
    await orchestrate.start_all(seed.connection, POLICY)
    for row in await seed.rows("SELECT id FROM webhook_delivery_jobs WHERE status = 'Pending'"):
        await seed.finish(row["id"])
    await orchestrate.apply_results(seed.connection, POLICY)


async def upgrade(before: DatabaseAddress, new: DatabaseAddress, first: Path, whole: Path) -> None:
    """The schema of `first`, rows in every state, then the later migrations of `whole`, one after the other."""
    await asyncio.to_thread(migrate, before, first)
    connection = await connect_as(before, Role.OWNER)
    auditor = await connect_as(before, Role.ADMIN)
    try:
        seed = Seed(connection)
        await write_rows_in_every_state(seed)
        written = await counts(seed)
        assert min(written.values()) > 0, written
        applied = await asyncio.to_thread(migrate, before, whole)
        assert applied == sorted(path.stem for path in (whole / "migrations").glob("*.sql"))
        assert await counts(seed) == written
        await go_on(seed)
        assert [finding.invariant for finding in await audit(auditor) if finding.rows] == []
        open_sagas = await seed.rows(
            "SELECT DISTINCT status::text FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')"
        )
        assert open_sagas == []
    finally:
        await connection.close()
        await auditor.close()
    await asyncio.to_thread(migrate, new, whole)
    upgraded, made = (schema_text(one.url).splitlines() for one in (before, new))
    differences = "\n".join(unified_diff(upgraded, made, "upgraded", "made anew", lineterm="", n=0))
    assert not differences, differences


async def test_the_migrations_of_this_version(
    addresses: tuple[DatabaseAddress, DatabaseAddress], tmp_path: Path
) -> None:
    await upgrade(*addresses, first_schema(tmp_path), SQL_DIR)


def planted(folder: Path, migration: str) -> Path:
    whole = folder / "whole"
    whole.mkdir()
    function = first_schema(whole) / "functions" / "refuse_row.sql"
    function.write_text(function.read_text().replace("untried'", "untried, always'"))
    return plant(whole, m101_planted=migration)


async def test_a_planted_migration(
    addresses: tuple[DatabaseAddress, DatabaseAddress], tmp_path: Path
) -> None:
    first = first_schema(tmp_path)
    await upgrade(*addresses, first, planted(tmp_path, PLANTED))


@pytest.mark.parametrize(
    ("migration", "told"),
    [
        (PLANTED.replace("-- load:", "-- not loaded:"), "untried, always"),
        (f"{PLANTED} DELETE FROM routing_outbox;", "'routing_outbox': 0"),
        (
            f"SET LOCAL session_replication_role = replica; UPDATE dead_letters SET saga_id = -id; {PLANTED}",
            "dead_letter",
        ),
    ],
    ids=["a function", "rows", "a promise"],
)
async def test_a_planted_migration_with_a_fault_is_found(
    addresses: tuple[DatabaseAddress, DatabaseAddress], tmp_path: Path, migration: str, told: str
) -> None:
    first = first_schema(tmp_path)
    with pytest.raises(AssertionError, match=told):
        await upgrade(*addresses, first, planted(tmp_path, migration))


PAGE = (SQL_DIR / "migrations" / "README.md").read_text(encoding="utf-8")
PRUNING = re.findall(r"```sql\n(GRANT retention_operator.*?)```", PAGE, re.DOTALL)


def test_an_owner_who_is_no_superuser_changes_the_function_that_deletes(tmp_path: Path) -> None:
    folder = first_schema(tmp_path)
    (migration,) = PRUNING
    with new_server() as urls:
        address = DatabaseAddress(urls["master"])
        migrate(address, folder)
        assert migrate(address, plant(folder, m101_pruning=migration)) == ["m101_pruning"]
        with psycopg.connect(address.url) as connection:
            found = connection.execute(
                "SELECT proowner::regrole::text, has_function_privilege('dead_letter_operator', oid, 'EXECUTE')"
                " FROM pg_proc WHERE proname = 'prune_finished'"
            ).fetchone()
    assert found == ("retention_operator", True)


@pytest.mark.skipif(OTHER_POSTGRES in os.environ, reason="the file is of PostgreSQL 18")
def test_the_file_of_the_schema_is_what_the_files_make(database_address: DatabaseAddress) -> None:
    command = "python -m docs.generators.schema_file"
    assert schema_text(database_address.url) == SCHEMA_FILE.read_text(encoding="utf-8"), command
