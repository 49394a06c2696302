"""Migrations: run again, run at once, killed in the middle, failing; and what they leave behind."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role, Session, fetch_dicts
from hooksaga.adapters.database_login import role_password
from hooksaga.adapters.migrations import SQL_DIR, migrate, migration_files
from hooksaga.core.errors import DatabaseUnavailable, MigrationFailed
from hooksaga.local.postgres import EmbeddedPostgres
from tests.database.later import plant
from tests.database.seed import Seed

ALL_FILES = [path.stem for path in migration_files()]

MIGRATE = """
import sys
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from pathlib import Path
print(len(migrate(DatabaseAddress(sys.argv[1]), Path(sys.argv[2]))), flush=True)
"""


@pytest.fixture
def empty(test_server: str, maintenance: psycopg.Connection) -> Iterator[DatabaseAddress]:
    """A database that nobody migrated."""
    maintenance.execute("CREATE DATABASE empty")
    yield DatabaseAddress(make_conninfo(test_server, dbname="empty"))
    maintenance.execute("DROP DATABASE empty WITH (FORCE)")


def start_process(address: DatabaseAddress, folder: Path = SQL_DIR) -> "subprocess.Popen[str]":
    args = [sys.executable, "-c", MIGRATE, address.url, str(folder)]
    return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ask(address: DatabaseAddress, question: str) -> object:
    with psycopg.connect(address.url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
        return row[0] if row else None


def test_every_file_is_run_once_in_order(empty: DatabaseAddress) -> None:
    assert migrate(empty) == ALL_FILES
    assert migrate(empty) == []


def test_processes_at_once_run_each_file_once(empty: DatabaseAddress) -> None:
    processes = [start_process(empty) for _ in range(3)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert sum(int(out) for out, _ in outputs) == len(ALL_FILES)


def test_a_lock_that_a_killed_process_left_behind_blocks_nobody(
    empty: DatabaseAddress, tmp_path: Path
) -> None:
    slow = plant(tmp_path, a="CREATE TABLE a (n int)", b="SELECT pg_sleep(300)")
    process = start_process(empty, slow)
    deadline = time.monotonic() + 30
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'empty' AND wait_event = 'PgSleep'"
    while ask(empty, sleeping) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.communicate()
    ask(empty, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    plant(tmp_path, b="CREATE TABLE b (n int)")
    assert migrate(empty, tmp_path) == ["b"]


def test_a_file_that_fails_leaves_those_before_it_and_says_why(
    empty: DatabaseAddress, tmp_path: Path
) -> None:
    plant(
        tmp_path,
        a="CREATE TABLE a (n int)",
        b="CREATE TABLE half (n int); SELECT no_such_column FROM a",
        c="CREATE TABLE c (n int)",
    )
    with pytest.raises(MigrationFailed, match="no_such_column"):
        migrate(empty, tmp_path)
    assert (
        ask(empty, "SELECT string_agg(relname, ',') FROM pg_class WHERE relname IN ('a', 'half', 'c')") == "a"
    )
    plant(tmp_path, b="CREATE TABLE half (n int)")
    assert migrate(empty, tmp_path) == ["b", "c"]


def test_a_second_database_of_the_same_server_finds_the_roles_there(empty: DatabaseAddress) -> None:
    assert ask(empty, "SELECT count(*) FROM pg_roles WHERE rolname = 'saga_orchestrator'") == 1
    assert len(migrate(empty)) == len(ALL_FILES)


def test_without_a_database_it_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        migrate(DatabaseAddress("postgresql://nobody@127.0.0.1:1/none"))


# Names and types of the seeds and of the specification. Further columns may be there.

TIME, TEXT_100 = "timestamp with time zone", "character varying(100)"

COLUMNS: dict[str, dict[str, str]] = {
    "events": {
        "id": "bigint",
        "event_type": TEXT_100,
        "created_at": TIME,
        "payload": "json",
        "webhook_id": "uuid",
        "tenant_id": TEXT_100,
        "source": "character varying(255)",
        "external_id": "character varying(255)",
    },
    "routing_outbox": {"event_id": "bigint", "created_at": TIME},
    "subscriptions": {
        "id": "bigint",
        "event_type": TEXT_100,
        "callback_url": "character varying(500)",
        "active": "boolean",
        "verified": "boolean",
        "created_at": TIME,
        "updated_at": TIME,
        "tenant_id": TEXT_100,
        "description": "character varying(500)",
        "eligible_since": TIME,
        "pending_callback_url": "character varying(500)",
        "max_retry_limit": "integer",
        "base_delay_seconds": "double precision",
        "timeout_seconds": "double precision",
        "headers": "jsonb",
        "deleted_at": TIME,
    },
    "subscription_secrets": {
        "id": "bigint",
        "subscription_id": "bigint",
        "secret": "text",
        "created_at": TIME,
        "expires_at": TIME,
    },
    "webhook_delivery_sagas": {
        "id": "bigint",
        "event_id": "bigint",
        "subscription_id": "bigint",
        "status": "saga_status",
        "attempt_count": "integer",
        "next_attempt_at": TIME,
        "final_error_code": TEXT_100,
        "created_at": TIME,
        "updated_at": TIME,
        "requeued_from": "bigint",
        "resent_from": "bigint",
    },
    "webhook_delivery_jobs": {
        "id": "bigint",
        "saga_id": "bigint",
        "status": "job_status",
        "lease_until": TIME,
        "attempt_at": TIME,
        "response_status": "integer",
        "error_code": TEXT_100,
        "subscription_id": "bigint",
        "attempt_number": "integer",
        "worker_id": TEXT_100,
        "claim_count": "integer",
        "lost_leases": "integer",
        "created_at": TIME,
        "dispatched_at": TIME,
        "leased_at": TIME,
        "finished_at": TIME,
        "duration_ms": "integer",
        "response_body": "text",
        "response_truncated": "boolean",
        "retry_after_seconds": "integer",
        "resolved_ip": "inet",
        "reconnected": "boolean",
    },
    "dead_letters": {
        "id": "bigint",
        "saga_id": "bigint",
        "event_id": "bigint",
        "subscription_id": "bigint",
        "final_error_code": TEXT_100,
        "reason": "character varying(300)",
        "failed_at": TIME,
        "payload_snapshot": "json",
    },
    "api_keys": {
        "id": "bigint",
        "name": TEXT_100,
        "key_sha256": "bytea",
        "last_four": "character varying(4)",
        "tenant_id": TEXT_100,
        "scopes": "text[]",
        "created_at": TIME,
        "revoked_at": TIME,
    },
}

INDEXES: dict[str, str] = {
    "idx_event_created": "events (created_at)",
    "idx_event_type": "events (event_type, created_at)",
    "uniq_event_external_id": "UNIQUE events (external_id, tenant_id, source)",
    "idx_sub_event_type": "subscriptions (event_type)",
    "idx_sub_active": "subscriptions (active)",
    "idx_saga_status_retry": "webhook_delivery_sagas"
    " (subscription_id, num_nonnulls(ordering_key), next_attempt_at, id)",
    "idx_saga_status": "webhook_delivery_sagas (subscription_id, id)",
    "uniq_saga_event_subscription": (
        "UNIQUE webhook_delivery_sagas (event_id, subscription_id, (\nCASE\n"
        "    WHEN requeued_from IS NULL AND resent_from IS NULL THEN 0::bigint\n    ELSE id\nEND))"
    ),
    "uniq_saga_requeued_from": "UNIQUE webhook_delivery_sagas (requeued_from)",
    "uniq_saga_resent_open": "UNIQUE webhook_delivery_sagas (resent_from)",
    "idx_job_status_lease": "webhook_delivery_jobs (status, lease_until)",
    "uniq_job_saga_attempt": "UNIQUE webhook_delivery_jobs (saga_id, attempt_at)",
    "idx_dead_saga": "dead_letters (saga_id)",
    "idx_dead_event": "dead_letters (event_id)",
    "uniq_dead_saga": "UNIQUE dead_letters (saga_id)",
}


@pytest.mark.parametrize("table", COLUMNS)
async def test_a_table_has_the_columns_of_the_specification(seed: Seed, table: str) -> None:
    rows = await seed.rows(
        "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        [table],
    )
    found = {row["attname"]: row["type"] for row in rows}
    assert {name: found.get(name) for name in COLUMNS[table]} == COLUMNS[table]


async def test_the_named_indexes_are_there(seed: Seed) -> None:
    rows = await seed.rows(
        "SELECT c.relname AS name, CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || i.indrelid::regclass"
        " || ' (' || (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n)"
        " FROM generate_series(1, i.indnkeyatts) AS n) || ')' AS definition"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = ANY (%s)",
        [list(INDEXES)],
    )
    assert {row["name"]: row["definition"] for row in rows} == INDEXES


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("saga_status", ["Pending", "InProgress", "PendingRetry", "Completed", "DeadLettered"]),
        ("job_status", ["Pending", "Leased", "Completed", "Failed"]),
    ],
)
async def test_the_states_are_those_of_the_seeds(seed: Seed, type_name: str, values: list[str]) -> None:
    assert (
        await seed.value(
            "SELECT enum_range(NULL::saga_status)::text[]"
            if type_name == "saga_status"
            else "SELECT enum_range(NULL::job_status)::text[]"
        )
        == values
    )


async def test_every_id_has_64_bits(seed: Seed) -> None:
    narrow = await seed.rows(
        "SELECT attrelid::regclass::text, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
        " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " AND (attname = 'id' OR attname LIKE '%%\\_id') AND atttypid = 'integer'::regtype"
    )
    assert narrow == []


NEVER_ORPHANED = {"webhook_delivery_sagas", "bulk_operations", "bulk_operation_lanes", "erasures"}


async def test_every_foreign_key_is_served_by_an_index(seed: Seed) -> None:
    """Or the check of a deleted parent would read the whole child. Parents of those left out are never deleted."""
    unserved = await seed.rows(
        "SELECT conrelid::regclass::text AS child, conname FROM pg_constraint f WHERE contype = 'f'"
        " AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = f.conrelid AND i.indkey[0] = f.conkey[1])"
    )
    assert {row["child"] for row in unserved} <= NEVER_ORPHANED, unserved


# Roles with passwords: a server of its own that asks for them.

PASSWORD = "p@ss:w/rd %20'\\\""


@pytest.fixture(scope="module")
def locked_server() -> Iterator[DatabaseAddress]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-scram-"))
    server = EmbeddedPostgres(folder)
    try:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER ROLE postgres PASSWORD {}").format(sql.Literal(PASSWORD)))
            (folder / "postgres" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        parts = conninfo_to_dict(url)
        where = f"host={quote(str(parts['host']), safe='/')}&port={parts['port']}"
        address = DatabaseAddress(f"postgresql://postgres:{quote(PASSWORD, safe='')}@/hooksaga?{where}")
        migrate(address)
        yield address
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("role", Role)
async def test_every_role_logs_in_with_the_password_derived_for_it(
    locked_server: DatabaseAddress, role: Role
) -> None:
    session = Session(locked_server, role)
    (row,) = await session.run(lambda c: fetch_dicts(c, "SELECT current_user::text AS who", {}))
    assert row["who"] == ("postgres" if role is Role.OWNER else role)
    await session.close()


async def test_the_password_of_one_role_opens_no_other(locked_server: DatabaseAddress) -> None:
    routers = role_password(PASSWORD, Role.ROUTER)
    thief = make_conninfo(locked_server.url, user=Role.DELIVERY, password=routers)
    with pytest.raises(errors.OperationalError, match="password"):
        await asyncio.to_thread(psycopg.connect, thief)


async def test_without_a_password_nobody_gets_in(locked_server: DatabaseAddress) -> None:
    session = Session(DatabaseAddress(locked_server.url.replace(quote(PASSWORD, safe=""), "")), Role.ROUTER)
    with pytest.raises(DatabaseUnavailable):
        await session.run(lambda c: fetch_dicts(c, "SELECT 1", {}))


def test_a_password_tells_nothing_of_another() -> None:
    passwords = {role_password(PASSWORD, role) for role in Role} | {role_password("other", Role.ROUTER)}
    assert len(passwords) == len(Role) + 1
    assert PASSWORD not in passwords
