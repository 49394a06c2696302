"""Everything through the real PgBouncer: migrations, the whole way of an event, the audit, the doctor, and its end."""

import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session, fetch_dicts
from hooksaga.adapters.migrations import SQL_DIR, migrate, migration_files
from hooksaga.adapters.session_settings import FUNCTIONS, of_role
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.event_input import EventDraft
from hooksaga.doctor.local import examine_database
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from hooksaga.runtime.settings import read_settings
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from tests.api.running_system import RunningSystem, wait_until
from tests.database.later import plant
from tests.database.pgbouncer import PgBouncer, needs_pgbouncer
from tests.e2e.recorder import Recorder
from tests.e2e.world import World, findings
from tests.faults.promises import Promise

pytestmark = [needs_pgbouncer, pytest.mark.e2e, pytest.mark.database, pytest.mark.slow]

PASSWORD = "of-the-owner"

FILES = [path.stem for path in migration_files()]

MIGRATE = """
import sys
from pathlib import Path
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
print(len(migrate(DatabaseAddress(sys.argv[1]), Path(sys.argv[2]))), flush=True)
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder of a server."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-pooled-"))
    folder.chmod(0o755)
    server = EmbeddedPostgres(folder)
    try:
        server.start()
        yield folder
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def direct(place: Path) -> Iterator[psycopg.Connection]:
    """A superuser's connection past every pooler."""
    with psycopg.connect(EmbeddedPostgres(place).start(), autocommit=True) as connection:
        yield connection


def bouncer(place: Path, mode: str, *, users: str = "", **settings: object) -> PgBouncer:
    folder = place / f"{mode}-{time.monotonic_ns()}"
    return PgBouncer(folder, place / "postgres", mode, users=users, **settings).start()


@pytest.fixture
def pooled(place: Path) -> Iterator[PgBouncer]:
    pooler = bouncer(place, "transaction")
    yield pooler
    pooler.stop()


@pytest.fixture
def empty(direct: psycopg.Connection) -> Iterator[str]:
    """The name of a database that nobody migrated."""
    direct.execute("CREATE DATABASE empty")
    yield "empty"
    direct.execute("DROP DATABASE empty WITH (FORCE)")


def locks(direct: psycopg.Connection) -> list[tuple[object, ...]]:
    return direct.execute("SELECT pid, mode FROM pg_locks WHERE locktype = 'advisory'").fetchall()


# Migrations.


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_migrate_works_through_a_pooler_and_leaves_no_lock(
    place: Path, direct: psycopg.Connection, empty: str, mode: str
) -> None:
    pooler = bouncer(place, mode)
    try:
        address = DatabaseAddress(pooler.url(empty))
        assert migrate(address) == FILES
        assert locks(direct) == []
        assert migrate(address) == []
        assert locks(direct) == []
    finally:
        pooler.stop()


def spawn(url: str, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", MIGRATE, url, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_at_once_run_each_file_once_through_a_pooler(pooled: PgBouncer, empty: str) -> None:
    processes = [spawn(pooled.url(empty), SQL_DIR) for _ in range(3)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert sum(int(out) for out, _ in outputs) == len(FILES)


@pytest.mark.guarantee(
    Promise.DATABASE, "migrate killed behind a transaction pooler", "no lock stays, the next one goes on"
)
def test_a_killed_migrate_leaves_no_lock_behind_a_pooler(
    pooled: PgBouncer, direct: psycopg.Connection, empty: str, tmp_path: Path
) -> None:
    plant(tmp_path, m1="CREATE TABLE half (n int); SELECT pg_sleep(600)")
    process = spawn(pooled.url(empty), tmp_path)
    wait_until(lambda: locks(direct), "the lock is held")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not locks(direct), "the lock is free")
    plant(tmp_path, m1="CREATE TABLE half (n int)")
    assert migrate(DatabaseAddress(pooled.url(empty)), tmp_path) == ["m1"]


def test_a_pooler_that_hands_on_after_each_statement_is_refused(place: Path, empty: str) -> None:
    pooler = bouncer(place, "statement")
    try:
        with pytest.raises(DatabaseUnavailable, match="statement pooling"):
            migrate(DatabaseAddress(pooler.url(empty)))
    finally:
        pooler.stop()


# Everything else, in a database that is migrated already.


@pytest.fixture(scope="module", params=["transaction", "session"])
def world(
    request: pytest.FixtureRequest,
    place: Path,
    folder: Path,
    recorder: Recorder,
    certificates: Certificates,
) -> Iterator[World]:
    pooler = bouncer(place, request.param)
    running = RunningSystem(
        folder,
        database_url=pooler.url(),
        max_retry_limit=2,
        base_delay_seconds=0.2,
        ca_file=certificates.ca,
    )
    running.database.close()
    running.database = psycopg.connect(EmbeddedPostgres(place).start(), autocommit=True)
    yield World(running, recorder)
    running.stop()
    pooler.stop()


def test_an_event_goes_its_whole_way(world: World) -> None:
    good, bad = world.subscribe(), world.subscribe("status/500")
    events = [world.post(good, b'{"n": %d}' % n) for n in range(20)]
    keyed = [world.post(good, b"{}", ("idempotency-key", f"{good.path}{n}")) for n in range(5)]
    for event_id in [*events, *keyed]:
        assert world.ended(event_id)["status"] == "Completed"
    dead = world.post(bad)
    world.requeue(dead)
    assert world.saga_in(dead, "DeadLettered")["attempt_count"] == 2


def test_every_promise_is_kept(world: World) -> None:
    assert findings(world.running.database_url) == []


async def test_the_doctor_finds_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", world.running.database_url)
    found = {check.name: check.faults async for check in examine_database(read_settings())}
    assert len(found) > 5
    assert {name: faults for name, faults in found.items() if faults} == {}


# What a pooler does to sessions.


async def pid(connection: Connection) -> int:
    (row,) = await fetch_dicts(connection, "SELECT pg_backend_pid() AS pid", {})
    return row["pid"]


async def accept(session: Session) -> None:
    (event,) = await session.run(lambda connection: accept_events(connection, [EventDraft("pooled", "{}")]))
    assert isinstance(event, AcceptedEvent)


@pytest.fixture
async def migrated(pooled: PgBouncer) -> DatabaseAddress:
    address = DatabaseAddress(pooled.url())
    await asyncio.to_thread(migrate, address)
    return address


@pytest.fixture
async def session(migrated: DatabaseAddress) -> AsyncIterator[Session]:
    session = Session(migrated, Role.INGEST)
    yield session
    await session.close()


async def test_what_sessions_depend_on_comes_through(session: Session) -> None:
    """Without a statement of their own: a pooler would hand it on to others."""
    query = "SELECT name, current_setting(name) AS value FROM unnest(%(names)s::text[]) AS stated (name)"
    rows = await session.run(lambda connection: fetch_dicts(connection, query, {"names": list(FUNCTIONS)}))
    assert {row["name"]: row["value"] for row in rows} == of_role(Role.INGEST.value)


@pytest.mark.guarantee(Promise.DATABASE, "a pooler restarted: no call fails", "no call failed")
async def test_a_pooler_that_was_restarted_costs_no_call(session: Session, pooled: PgBouncer) -> None:
    await accept(session)
    pooled.stop()
    pooled.start()
    await accept(session)


@pytest.mark.guarantee(
    Promise.DATABASE, "a server restarted behind a pooler: no call fails", "no call failed"
)
async def test_a_server_that_was_restarted_behind_a_pooler_costs_no_call(
    session: Session, direct: psycopg.Connection
) -> None:
    await accept(session)
    ended = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'event_ingest_writer'"
    )
    assert direct.execute(ended).rowcount >= 1
    await accept(session)


@pytest.mark.guarantee(Promise.DATABASE, "a pooler that closes idle clients: no call fails", "no call failed")
async def test_a_pooler_that_closes_idle_clients_costs_no_call(
    place: Path, migrated: DatabaseAddress
) -> None:
    pooler = bouncer(place, "transaction", client_idle_timeout=1, server_idle_timeout=1)
    session = Session(replace(migrated, url=pooler.url()), Role.INGEST)

    def closed() -> int:
        return (pooler.folder / "pgbouncer.log").read_text().count("client_idle_timeout")

    try:
        for times in (1, 2):
            await accept(session)
            wait_until(lambda times=times: closed() >= times, "it was closed")
        await accept(session)
    finally:
        await session.close()
        pooler.stop()


async def test_prepared_statements_do_not_go_through_this_pooler_and_it_is_said(
    migrated: DatabaseAddress,
) -> None:
    """PgBouncer before 1.21 knows nothing of them: two clients give theirs the same name on one connection."""
    sessions = [Session(replace(migrated, prepare=True), Role.INGEST) for _ in range(2)]
    said: list[str] = []
    for session in [*sessions] * 20:
        try:
            await session.run(pid)
        except DatabaseUnavailable as error:
            said.append(str(error))
    assert "prepared statement" in said[0]
    for session in sessions:
        await session.close()


# Passwords.


@pytest.fixture
def locked_place() -> Iterator[Path]:
    """The folder of a server that asks for passwords, whose owner has one."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-pooled-"))
    folder.chmod(0o755)
    server = EmbeddedPostgres(folder)
    try:
        with psycopg.connect(server.start(), autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER ROLE postgres PASSWORD {}").format(sql.Literal(PASSWORD)))
            (folder / "postgres" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        yield folder
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def test_the_roles_log_in_with_their_passwords_through_auth_query(locked_place: Path) -> None:
    """migrate sets the passwords of the roles; the pooler asks the server for them, and knows the owner's only."""
    users = f'"postgres" "{PASSWORD}"\n'
    pooler = PgBouncer(
        locked_place / "pooler",
        locked_place / "postgres",
        "transaction",
        users=users,
        auth_type="scram-sha-256",
        auth_user="postgres",
        auth_query="SELECT usename, passwd FROM pg_shadow WHERE usename = $1",
    )
    address = DatabaseAddress(pooler.url().replace("postgres@", f"postgres:{PASSWORD}@"))
    pooler.start()
    try:
        await asyncio.to_thread(migrate, address)
        for role in Role:
            session = Session(address, role)
            assert await session.run(pid) > 0
            await session.close()
        stranger = Session(replace(address, url=address.url.replace(PASSWORD, "guessed")), Role.ROUTER)
        with pytest.raises(DatabaseUnavailable, match="SASL authentication failed"):
            await stranger.run(pid)
    finally:
        pooler.stop()
