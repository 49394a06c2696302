"""The doctor finds each thing that is wrong with a database, by its own check and by no other, with what to do."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import RowRefused
from hooksaga.doctor import database as judged
from hooksaga.doctor.check import Health
from hooksaga.doctor.database import judge, judge_server
from hooksaga.operations.doctor import read_facts, read_server, try_to_store
from tests.conftest import Connect, SessionOf
from tests.database.seed import Seed


@pytest.fixture
async def admin(connect: Connect) -> Connection:
    """The database as the admin function sees it."""
    return await connect(Role.ADMIN)


async def failed_checks(admin: Connection) -> dict[str, list[str]]:
    facts = json.loads(json.dumps(await read_facts(admin)))  # as they come through Lambda
    return {check.name: check.faults for check in judge(facts) if check.faults}


@asynccontextmanager
async def undone(seed: Seed, change: str, back: str) -> AsyncIterator[None]:
    """Roles belong to the whole server, so what is changed of them is put back."""
    await seed.connection.execute(change.encode())
    try:
        yield
    finally:
        await seed.connection.execute(back.encode())


async def test_a_migrated_database_is_sound_for_every_eye(admin: Connection, seed: Seed) -> None:
    assert await failed_checks(admin) == {}
    assert await failed_checks(seed.connection) == {}


@pytest.mark.parametrize(
    ("change", "back", "fault"),
    [
        ("ALTER ROLE job_worker SUPERUSER", "ALTER ROLE job_worker NOSUPERUSER", "job_worker has privileges"),
        ("ALTER ROLE job_worker BYPASSRLS", "ALTER ROLE job_worker NOBYPASSRLS", "job_worker has privileges"),
        (
            "GRANT pg_read_all_data TO router_worker",
            "REVOKE pg_read_all_data FROM router_worker",
            "is a member of",
        ),
        ("GRANT retention_operator TO job_worker", "REVOKE retention_operator FROM job_worker", "can act as"),
        ("ALTER ROLE retention_operator LOGIN", "ALTER ROLE retention_operator NOLOGIN", "can log in"),
        ("ALTER ROLE event_producer LOGIN", "ALTER ROLE event_producer NOLOGIN", "can log in"),
        ("GRANT event_producer TO job_worker", "REVOKE event_producer FROM job_worker", "is a member of"),
        ("ALTER ROLE lease_cleaner NOLOGIN", "ALTER ROLE lease_cleaner LOGIN", "lease_cleaner cannot log in"),
        (
            "ALTER ROLE job_worker RESET lock_timeout",
            "ALTER ROLE job_worker SET lock_timeout = '10s'",
            "job_worker has no lock_timeout",
        ),
        (
            "ALTER ROLE job_worker SET statement_timeout = 0",
            "ALTER ROLE job_worker SET statement_timeout = '30s'",
            "job_worker has no statement_timeout",
        ),
        (
            "ALTER ROLE job_worker RESET enable_hashjoin",
            "ALTER ROLE job_worker SET enable_hashjoin = off",
            "job_worker can get plans that read a whole backlog",
        ),
    ],
)
async def test_a_role_with_other_powers(
    admin: Connection, seed: Seed, change: str, back: str, fault: str
) -> None:
    async with undone(seed, change, back):
        found = await failed_checks(admin)
    assert list(found) == [judged.ROLES]
    assert any(fault in line for line in found[judged.ROLES]), found
    assert await failed_checks(admin) == {}


async def test_an_application_may_be_a_producer(admin: Connection, seed: Seed) -> None:
    await seed.connection.execute("CREATE ROLE some_application LOGIN")
    try:
        await seed.connection.execute("GRANT event_producer TO some_application")
        assert await failed_checks(admin) == {}
    finally:
        await seed.connection.execute("DROP ROLE some_application")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            "GRANT SELECT ON dead_letters TO job_worker",
            "job_worker can SELECT on dead_letters but must not",
        ),
        ("GRANT TRUNCATE ON events TO router_worker", "router_worker can TRUNCATE on events but must not"),
        ("GRANT SELECT (payload) ON events TO router_worker", "must not SELECT payload of events: REVOKE"),
        ("GRANT UPDATE (status) ON webhook_delivery_jobs TO saga_orchestrator", "must not UPDATE status of"),
        ("GRANT SELECT ON events TO PUBLIC", "PUBLIC can SELECT on events but must not"),
        ("GRANT EXECUTE ON FUNCTION refuse_change() TO PUBLIC", "PUBLIC can EXECUTE on refuse_change"),
        ("GRANT SELECT ON api_keys TO dead_letter_operator", "dead_letter_operator can SELECT on api_keys"),
        (
            "REVOKE SELECT ON subscription_secrets FROM job_worker",
            "job_worker cannot SELECT on subscription_",
        ),
        (
            "REVOKE UPDATE (attempt_count) ON webhook_delivery_sagas FROM saga_orchestrator",
            "must UPDATE attempt_count",
        ),
        (
            "REVOKE EXECUTE ON FUNCTION check_api_key FROM event_ingest_writer",
            "cannot EXECUTE on check_api_key",
        ),
        ("GRANT CREATE ON SCHEMA public TO PUBLIC", "every role can create objects"),
        ("CREATE TABLE forgotten (id int); GRANT SELECT ON forgotten TO job_worker", "SELECT on forgotten"),
    ],
)
async def test_a_right_too_many_or_too_few(admin: Connection, seed: Seed, change: str, fault: str) -> None:
    await seed.connection.execute(change.encode())
    found = await failed_checks(admin)
    assert list(found) == [judged.RIGHTS]
    assert any(fault in line for line in found[judged.RIGHTS]), found


async def test_what_it_says_to_do_about_a_right_is_what_helps(admin: Connection, seed: Seed) -> None:
    for change in (
        "GRANT SELECT ON dead_letters TO job_worker",
        "REVOKE DELETE ON routing_outbox FROM router_worker",
        "GRANT EXECUTE ON FUNCTION list_api_keys TO job_worker",
        "GRANT SELECT (payload) ON events TO router_worker",
    ):
        await seed.connection.execute(change.encode())
    lines = (await failed_checks(admin))[judged.RIGHTS]
    assert len(lines) == 4
    for line in lines:
        await seed.connection.execute(line.split(": ", 1)[1].encode())
    assert await failed_checks(admin) == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("ALTER TABLE events DISABLE TRIGGER events_never_change", "events_never_change is disabled"),
        (
            "ALTER TABLE events ENABLE REPLICA TRIGGER events_never_change",
            "events_never_change is disabled",
        ),
        ("DROP TRIGGER saga_moves_are_legal ON webhook_delivery_sagas", "saga_moves_are_legal is missing"),
        (
            "CREATE TRIGGER mine BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse_row()",
            "mine does not belong",
        ),
    ],
)
async def test_a_guard_that_is_off_gone_or_strange(
    admin: Connection, seed: Seed, change: str, fault: str
) -> None:
    await seed.connection.execute(change.encode())
    found = await failed_checks(admin)
    assert list(found) == [judged.GUARDS]
    assert fault in found[judged.GUARDS][0]


async def test_a_session_that_switches_guards_off(seed: Seed) -> None:
    await seed.connection.execute("SET session_replication_role = replica")
    assert list(await failed_checks(seed.connection)) == [judged.GUARDS]


async def test_the_deleting_function_with_another_owner(admin: Connection, seed: Seed) -> None:
    await seed.connection.execute("ALTER FUNCTION prune_finished OWNER TO CURRENT_USER")
    found = await failed_checks(admin)
    assert "functions of retention are owned by postgres: run `hooksaga migrate`" in found[judged.ROLES]
    await seed.connection.execute("SELECT give_retention_its_owner()")
    assert await failed_checks(admin) == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DELETE FROM hooksaga_migrations WHERE name = '12_retention'", "not applied: 12_retention"),
        (
            "UPDATE hooksaga_migrations SET name = '999_later' WHERE name = '12_retention'",
            "999_later",
        ),
    ],
)
async def test_another_versions_schema_is_not_judged_further(
    admin: Connection, seed: Seed, change: str, fault: str
) -> None:
    await seed.connection.execute(change.encode())
    await seed.connection.execute("GRANT SELECT ON dead_letters TO job_worker")
    checks = {check.name: check for check in judge(await read_facts(admin))}
    assert fault in " ".join(checks[judged.MIGRATIONS].faults)
    assert checks[judged.RIGHTS].health is Health.SKIPPED


@pytest.mark.parametrize(("apart", "good"), [(0.0, True), (9.0, True), (-11.0, False), (3600.0, False)])
async def test_clocks_that_go_apart(admin: Connection, apart: float, good: bool) -> None:
    facts = await read_facts(admin)
    (*_, clock) = judge(facts, facts["server"]["now_seconds"] + apart)
    assert (clock.health is Health.OK) is good


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"version_number": 140_012}, "PostgreSQL 15 or newer"),
        ({"is_standby": True}, "standby"),
        ({"is_read_only": True, "read_only_by": "database"}, "set by: database"),
    ],
)
async def test_a_server_that_cannot_be_used(admin: Connection, change: dict[str, Any], fault: str) -> None:
    server = await read_server(admin)
    assert not any(check.faults for check in judge_server(server))
    faults = [fault for check in judge_server({**server, **change}) for fault in check.faults]
    assert len(faults) == 1
    assert fault in faults[0]


# What stops writes, or will.


async def test_ids_that_run_out(admin: Connection, seed: Seed) -> None:
    await seed.connection.execute("SELECT setval('events_id_seq', 9223372036854775000)")
    found = await failed_checks(admin)
    assert list(found) == [judged.LIMITS]
    assert "events has used ids up to 9223372036854775000" in found[judged.LIMITS][0]


async def test_a_slot_that_nobody_reads(
    admin: Connection, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed.connection.execute("SELECT pg_create_physical_replication_slot('forgotten', true)")
    try:
        assert await failed_checks(admin) == {}
        monkeypatch.setattr(judged, "MAX_IDLE_LOG_BYTES", -1)
        (fault,) = (await failed_checks(admin))[judged.LIMITS]
    finally:
        await seed.connection.execute("SELECT pg_drop_replication_slot('forgotten')")
    assert "pg_drop_replication_slot('forgotten')" in fault


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"connections": 179}, ""),
        ({"connections": 181}, "181 of 200 connections are in use"),
        ({"synchronous_standbys": "ANY 1 (*)"}, "COMMIT waits"),
        ({"synchronous_standbys": "*", "standbys": 1}, ""),
    ],
)
async def test_limits_that_are_reached(admin: Connection, change: dict[str, Any], fault: str) -> None:
    facts = await read_facts(admin)
    assert facts["limits"]["connections"] >= 1
    assert facts["limits"]["connection_limit"] > 100
    limits = {**facts["limits"], "connection_limit": 200, **change}
    checks = {check.name: check.faults for check in judge({**facts, "limits": limits})}
    assert [fault in one for one in checks[judged.LIMITS]] == ([True] if fault else [])


async def test_transaction_ids_that_run_out(admin: Connection) -> None:
    facts = await read_facts(admin)
    old = {"database_name": "hooksaga", "transactions": 1_500_000_000, "multixacts": 1}
    checks = {check.name: check.faults for check in judge({**facts, "transaction_ids_near_their_end": [old]})}
    assert "VACUUM (FREEZE)" in checks[judged.LIMITS][0]


@pytest.mark.parametrize(
    ("level", "setting", "value", "is_ill"),
    [
        ("ROLE job_worker IN DATABASE {}", "datestyle", "German", True),
        ("ROLE job_worker", "search_path", "app", True),
        ("DATABASE {}", "array_nulls", "off", True),
        ("ROLE job_worker IN DATABASE {}", "statement_timeout", "0", True),
        ("ROLE job_worker", "work_mem", "'64MB'", False),
        ("ROLE job_worker IN DATABASE {}", "lock_timeout", "'5s'", False),
    ],
)
async def test_a_default_that_sessions_do_not_bear(
    admin: Connection, seed: Seed, level: str, setting: str, value: str, is_ill: bool
) -> None:
    target = level.format(await seed.value("SELECT quote_ident(current_database())"))
    async with undone(seed, f"ALTER {target} SET {setting} = {value}", f"ALTER {target} RESET {setting}"):
        found = await failed_checks(admin)
    assert list(found) == ([judged.ROLES] if is_ill else [])
    assert not is_ill or any(setting in fault for fault in found[judged.ROLES])


async def test_whether_an_event_can_be_stored_is_tried_and_nothing_stays(
    session_of: SessionOf, seed: Seed
) -> None:
    ingest = session_of(Role.INGEST)
    await ingest.run(try_to_store)
    assert await seed.value("SELECT count(*) FROM events") == 0
    assert await seed.value("SELECT count(*) FROM routing_outbox") == 0
    await seed.connection.execute("ALTER TABLE events ADD CONSTRAINT nobody CHECK (event_type = '')")
    with pytest.raises(RowRefused, match="nobody"):
        await ingest.run(try_to_store)
