"""Faults of a database under load. Each fault is injected, lasts, and has ended when the function returns its count."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from hooksaga.adapters.database import Role
from tests.api.running_system import wait_until
from tests.e2e.up_process import pause_until
from tests.faults.database_server import DatabaseServer, fill, move_folder, small_disk
from tests.faults.promises import IN_FULL
from tests.faults.wire import Loss, Wire

CUTTING_SECONDS = 20.0 if IN_FULL else 3.0
LOSING_SECONDS = 8.0 if IN_FULL else 3.0
HOLDING_SECONDS = 4.0 if IN_FULL else 2.0
AWAY_SECONDS = 2.0 if IN_FULL else 1.0

FUNCTION_ROLES = [role for role in Role if role is not Role.OWNER]


END_CONNECTIONS: LiteralString = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, 'hooksaga ')"
)


class Site:
    """Where faults strike: a server behind a wire. After a failover `server` is another one."""

    def __init__(self, folder: Path, server: DatabaseServer, wire: Wire) -> None:
        self.folder = folder
        self.server = server
        self.wire = wire
        self.chance = random.Random(20_261_128)

    def end_connections(self) -> None:
        """End the connections of all functions, so that new ones log in with the current settings."""
        self.server.run(END_CONNECTIONS)


@dataclass(frozen=True)
class Fault:
    """evidence: what the server's log says when it has struck; empty when `strike` counts by itself."""

    name: str
    strike: Callable[[Site], int]
    evidence: str = ""
    is_quick: bool = False


def _wait(seconds: float) -> None:
    pause_until(time.monotonic() + seconds)


def _restart_fast(site: Site) -> int:
    site.server.stop("fast")
    _wait(AWAY_SECONDS)
    site.server.start()
    return 1


def _restart_immediate(site: Site) -> int:
    """No checkpoint, no farewell: what was not in the log is gone."""
    for _ in range(2):
        site.server.stop("immediate")
        _wait(AWAY_SECONDS / 2)
        site.server.start()
        _wait(0.5)
    return 2


@contextmanager
def _setting(site: Site, name: LiteralString, value: str) -> Iterator[None]:
    """In force for open connections too."""
    change = sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
    reset = sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name))
    with site.server.connect() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(change)
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            connection.execute(reset)
            connection.execute("SELECT pg_reload_conf()")


def _read_only(site: Site) -> int:
    with _setting(site, "default_transaction_read_only", "on"):
        _wait(HOLDING_SECONDS)
    return 1


def _fail_over(site: Site) -> int:
    """The old server stays up and can only be read, as those of some clouds do; new connections go to the standby,
    which can be written once it is promoted."""
    old = site.server
    standby = old.follow(site.folder / f"standby-{time.monotonic_ns()}")
    _wait(1)
    old.run("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    _wait(1)
    site.wire.server_socket = standby.socket
    _wait(1)
    standby.promote()
    standby.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
    site.server = standby
    return 1


def _die_and_fail_over(site: Site) -> int:
    """The old server dies at once; what it had answered is on the standby."""
    old = site.server
    standby = old.follow(site.folder / f"standby-{time.monotonic_ns()}")
    _wait(1)
    old.stop("immediate")
    site.wire.server_socket = standby.socket
    _wait(1)
    standby.promote()
    standby.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
    site.server = standby
    return 1


def _cut(site: Site) -> int:
    end, times = time.monotonic() + CUTTING_SECONDS, 0
    while time.monotonic() < end:
        _wait(site.chance.uniform(0.02, 0.5))
        site.wire.cut_all()
        times += 1
    return times


def _lose(loss: Loss) -> Callable[[Site], int]:
    def strike(site: Site) -> int:
        before = site.wire.struck
        site.wire.strike_at_random(1 / 20, loss)
        _wait(LOSING_SECONDS)
        site.wire.strike_at_random(0, loss)
        return site.wire.struck - before

    return strike


def _deadlock(site: Site) -> int:
    """A rival locks what the stages lock, in the wrong order: jobs newest first, and before their sagas. It never
    yields, so it is always hooksaga that has to."""
    stopping = threading.Event()
    with _setting(site, "deadlock_timeout", "10ms"):
        rival = threading.Thread(target=_lock_in_the_wrong_order, args=(site, stopping))
        rival.start()
        _wait(HOLDING_SECONDS)
        stopping.set()
        rival.join()
    return 0


def _lock_in_the_wrong_order(site: Site, stopping: threading.Event) -> None:
    with site.server.connect() as connection:
        connection.execute("SET deadlock_timeout = '10s'")
        while not stopping.is_set():
            _wait(site.chance.uniform(0, 0.05))
            with connection.transaction():
                _lock_rows(connection)
            _wait(site.chance.uniform(0, 0.05))
            with connection.transaction():
                connection.execute("LOCK TABLE webhook_delivery_jobs IN EXCLUSIVE MODE")
                connection.execute("LOCK TABLE webhook_delivery_sagas IN EXCLUSIVE MODE")


def _lock_rows(connection: psycopg.Connection) -> None:
    open_jobs = connection.execute(
        "SELECT j.id, j.saga_id FROM webhook_delivery_jobs j"
        "  JOIN webhook_delivery_sagas s ON s.id = j.saga_id AND s.status = 'InProgress'"
        " WHERE j.attempt_at = s.next_attempt_at ORDER BY j.id DESC LIMIT 30"
    ).fetchall()
    for job_id, _ in open_jobs:
        connection.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [job_id])
    for _, saga_id in open_jobs:
        connection.execute("SELECT FROM webhook_delivery_sagas WHERE id = %s FOR UPDATE", [saga_id])


def _serializable(site: Site) -> int:
    """Set the default for the roles in this database, which overrides weaker ones."""
    _set_in_database(site, sql.SQL("SET default_transaction_isolation = serializable"))
    _wait(HOLDING_SECONDS)
    _set_in_database(site, sql.SQL("SET default_transaction_isolation = 'read committed'"))
    return 0


def _set_in_database(site: Site, setting: sql.SQL) -> None:
    with site.server.connect() as connection:
        database = sql.Identifier(connection.info.dbname)
        for role in FUNCTION_ROLES:
            change = sql.SQL("ALTER ROLE {} IN DATABASE {} {}")
            connection.execute(change.format(sql.Identifier(role.value), database, setting))
    site.end_connections()


def _short_timeouts(site: Site) -> int:
    """And a rival who locks whole tables for longer, so that they strike."""
    _set_timeouts(site, "50ms", "50ms")
    end = time.monotonic() + HOLDING_SECONDS
    tables = ("events", "webhook_delivery_jobs", "webhook_delivery_sagas", "routing_outbox")
    with site.server.connect() as connection:
        while time.monotonic() < end:
            with connection.transaction():
                lock = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")
                connection.execute(lock.format(sql.Identifier(site.chance.choice(tables))))
                _wait(site.chance.uniform(0, 0.2))
            _wait(site.chance.uniform(0, 0.2))
    _set_timeouts(site, "30s", "10s")
    return 0


def _set_timeouts(site: Site, statement: str, lock: str) -> None:
    with site.server.connect() as connection:
        for role in FUNCTION_ROLES:
            for name, value in (("statement_timeout", statement), ("lock_timeout", lock)):
                change = sql.SQL("ALTER ROLE {} SET {} = {}")
                connection.execute(
                    change.format(sql.Identifier(role.value), sql.Identifier(name), sql.Literal(value))
                )
    site.end_connections()


def _take_all_connections(site: Site) -> int:
    """A rival takes every connection that becomes free, until the functions have none, and holds them."""
    taken: list[psycopg.Connection] = []
    end = time.monotonic() + HOLDING_SECONDS + 3
    user = Role.ADMIN.value
    superuser = site.server.connect()  # before there is no place for it either
    try:
        while time.monotonic() < end:
            try:
                taken.append(psycopg.connect(site.server.url, user=user, application_name="rival"))
            except psycopg.OperationalError:
                superuser.execute(END_CONNECTIONS)
    finally:
        for connection in [superuser, *taken]:
            connection.close()
    return 0


def _fill_data_disk(site: Site) -> int:
    """All tables and indexes lie on a small disk, which becomes full."""
    with small_disk(site.folder / "small", 64) as disk:
        _move_tables(site, "pg_default", "small", disk)
        _wait(0.5)
        position = site.server.log_size()
        ballast = fill(disk)
        wait_until(lambda: "could not extend" in site.server.log_since(position), "the disk is full", 30)
        _wait(AWAY_SECONDS)
        ballast.unlink()
        _wait(AWAY_SECONDS)
        _move_tables(site, "small", "pg_default", None)
    return 0


def _move_tables(site: Site, source: str, target: str, disk: Path | None) -> None:
    names = {"source": sql.Identifier(source), "target": sql.Identifier(target)}
    with site.server.connect() as connection:
        if disk is not None:
            create = sql.SQL("CREATE TABLESPACE {} LOCATION {}")
            connection.execute(create.format(names["target"], sql.Literal(str(disk))))
        for kind in (sql.SQL("TABLE"), sql.SQL("INDEX")):
            move = sql.SQL("ALTER {kind} ALL IN TABLESPACE {source} SET TABLESPACE {target}")
            _until_no_deadlock(connection, move.format(kind=kind, **names))
        if disk is None:
            connection.execute("CHECKPOINT")
            connection.execute(sql.SQL("DROP TABLESPACE {}").format(names["source"]))


def _until_no_deadlock(connection: psycopg.Connection, statement: sql.Composed) -> None:
    """Lock all tables in another order, under load."""
    for _ in range(20):
        try:
            connection.execute(statement)
            return
        except psycopg.errors.DeadlockDetected:
            continue
    raise AssertionError("the tables cannot be moved")


def _fill_log_disk(site: Site) -> int:
    """The write-ahead log lies on a small disk, which becomes full: PostgreSQL panics, and cannot recover."""
    server = site.server
    log = server.folder / "pg_wal"
    with small_disk(site.folder / "log", 256) as disk:
        server.stop("fast")
        move_folder(log, disk / "pg_wal")
        log.rmdir()
        log.symlink_to(disk / "pg_wal")
        server.start()
        _wait(1)
        position = server.log_size()
        ballast = fill(disk)
        _write_log_until_it_is_full(server)
        wait_until(lambda: "PANIC" in server.log_since(position), "PostgreSQL has panicked", 30)
        _wait(AWAY_SECONDS)
        ballast.unlink()
        _revive(server)
        _wait(1)
        server.stop("fast")
        log.unlink()
        move_folder(disk / "pg_wal", log)
        server.start()
    return 0


def _write_log_until_it_is_full(server: DatabaseServer) -> None:
    for _ in range(20):
        try:
            server.run("SELECT pg_switch_wal() FROM pg_logical_emit_message(true, 'rival', 'x')")
        except psycopg.OperationalError:
            return


def _revive(server: DatabaseServer) -> None:
    """A server whose recovery found no space has ended; one whose recovery got through has not."""
    for _ in range(3):
        if not (server.folder / "postmaster.pid").exists():
            server.start()
        try:
            wait_until(server.is_up, "the server is up", 5)
            return
        except AssertionError:
            continue
    raise AssertionError("the server did not come back")


FAULTS = {
    "restart-fast": Fault("the server restarted in fast mode", _restart_fast),
    "restart-immediate": Fault(
        "the server stopped in immediate mode and started, twice", _restart_immediate, is_quick=True
    ),
    "read-only": Fault(
        "all transactions read-only for a while", _read_only, "read-only transaction", is_quick=True
    ),
    "cuts": Fault("all connections cut at random moments", _cut, is_quick=True),
    "lost": Fault("one write or COMMIT in twenty lost on its way", _lose(Loss.LOST)),
    "unanswered": Fault("the answer to one write or COMMIT in twenty lost", _lose(Loss.UNANSWERED)),
    "deadlocks": Fault(
        "a rival session that locks jobs and sagas in the wrong order", _deadlock, "deadlock detected"
    ),
    "serializable": Fault("every transaction serializable", _serializable, "could not serialize access"),
    "timeouts": Fault(
        "statement and lock timeouts of 50 ms, tables locked for longer",
        _short_timeouts,
        "canceling statement",
    ),
    "no-connections": Fault(
        "all connections taken by a rival",
        _take_all_connections,
        "too many clients|remaining connection slots",
    ),
    "full-disk": Fault("the disk of the tables full", _fill_data_disk, "could not extend"),
    "full-log-disk": Fault("the disk of the write-ahead log full", _fill_log_disk, "PANIC"),
    "failover-dead": Fault("the server dead and a standby promoted", _die_and_fail_over),
    "failover-read-only": Fault(
        "the server read-only and a standby promoted beside it", _fail_over, "read-only transaction"
    ),
}
"""By the names that pytest calls them."""
