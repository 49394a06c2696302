"""A connection that somebody closed while nobody used it costs nothing; one that dies at work costs what is unknown.

By the server, by its operator, and by what stands between: what has not begun is run on a new connection, and what may
have been committed is never run twice.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.adapters import database
from hooksaga.adapters.database import (
    Connection,
    DatabaseAddress,
    Role,
    Session,
    WatchedConnection,
    transaction,
)
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.event_input import EventDraft
from hooksaga.stages.accept_events import AcceptedEvent, accept_events, insert_events
from tests.conftest import SessionOf
from tests.database.seed import Seed, pid
from tests.faults.promises import Promise
from tests.faults.wire import SOCKET, Loss, Wire

IDLE_MILLISECONDS = 100

WITHOUT_KEY = EventDraft("a", "{}")
WITH_KEY = EventDraft("a", "{}", external_id="key")


async def pid_in_transaction(connection: Connection) -> int:
    async with transaction(connection):
        return await pid(connection)


Unit: TypeAlias = Callable[[Connection], Awaitable[object]]


async def in_transaction(connection: Connection) -> None:
    async with transaction(connection):
        await insert_events(connection, [WITHOUT_KEY])


def accept(draft: EventDraft) -> Unit:
    return lambda connection: accept_events(connection, [draft])


async def until_gone(seed: Seed, backend: int) -> None:
    deadline = time.monotonic() + 20
    while await seed.value("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend]):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.fixture
async def closes_when_idle(seed: Seed) -> AsyncIterator[None]:
    """As `idle_session_timeout` on the server does."""
    name = await seed.value("SELECT quote_ident(current_database())")
    change = (
        f"ALTER ROLE event_ingest_writer IN DATABASE {name} SET idle_session_timeout = {IDLE_MILLISECONDS}"
    )
    await seed.connection.execute(change.encode())
    yield
    await seed.connection.execute(f"ALTER ROLE event_ingest_writer IN DATABASE {name} RESET ALL".encode())


@pytest.mark.usefixtures("closes_when_idle")
@pytest.mark.guarantee(
    Promise.DATABASE, "idle connections closed by the server: no call fails", "no call failed"
)
async def test_a_server_that_closes_idle_connections_costs_no_call(session_of: SessionOf, seed: Seed) -> None:
    session = session_of(Role.INGEST)
    backends: set[int] = set()
    for _ in range(6):
        (event,) = await session.run(lambda connection: accept_events(connection, [WITHOUT_KEY]))
        assert isinstance(event, AcceptedEvent)
        backends.add(await session.run(pid))
        await until_gone(seed, await session.run(pid))
    assert len(backends) == 6
    assert await seed.value("SELECT count(*) FROM events") == 6


@pytest.mark.usefixtures("closes_when_idle")
@pytest.mark.parametrize("draft", [WITHOUT_KEY, WITH_KEY])
async def test_a_connection_that_is_closed_for_idleness_just_before_its_statement_comes(
    session_of: SessionOf, seed: Seed, monkeypatch: pytest.MonkeyPatch, draft: EventDraft
) -> None:
    """The end was not seen before the statement was sent: the server's last words prove that it was not read."""
    session = session_of(Role.INGEST)
    first = await session.run(pid)
    await until_gone(seed, first)
    monkeypatch.setattr(WatchedConnection, "has_ended", lambda _: False)
    await session.run(accept(draft))
    assert await session.run(pid) != first
    assert await seed.value("SELECT count(*) FROM events") == 1


@pytest.mark.guarantee(Promise.DATABASE, "connections terminated while idle: no call fails", "no call failed")
async def test_a_connection_that_is_terminated_while_idle_is_replaced_unnoticed(
    session_of: SessionOf, seed: Seed
) -> None:
    session = session_of(Role.INGEST)
    first = await session.run(pid)
    await seed.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    await session.run(accept(WITHOUT_KEY))
    assert await session.run(pid) != first
    assert await seed.value("SELECT count(*) FROM events") == 1


@pytest.mark.parametrize(
    ("unit", "reads_only", "is_repeated"),
    [(pid, False, False), (pid, True, True), (pid_in_transaction, False, True)],
)
async def test_a_unit_whose_connection_dies_at_work_is_repeated_only_where_it_has_left_nothing(
    database_address: DatabaseAddress,
    seed: Seed,
    monkeypatch: pytest.MonkeyPatch,
    unit: Callable[[Connection], Awaitable[int]],
    reads_only: bool,
    is_repeated: bool,
) -> None:
    """A termination tells nothing: it may have come behind a COMMIT. Outside of a transaction each statement is one."""
    session = Session(database_address, Role.INGEST, reads_only=reads_only)
    first = await session.run(pid)
    await seed.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    monkeypatch.setattr(WatchedConnection, "has_ended", lambda _: False)
    if is_repeated:
        assert await session.run(unit) != first
    else:
        with pytest.raises(DatabaseUnavailable):
            await session.run(unit)
    await session.close()


async def test_a_fresh_connection_that_dies_at_once_is_no_reason_to_try_for_ever(
    session_of: SessionOf, seed: Seed
) -> None:
    session, runs = session_of(Role.INGEST), list[int]()

    async def unit(connection: Connection) -> None:
        async with transaction(connection):
            runs.append(await pid(connection))
            await seed.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [runs[-1]])
            await pid(connection)

    with pytest.raises(DatabaseUnavailable):
        await session.run(unit)
    assert len(runs) == 1
    await session.run(pid)
    with pytest.raises(DatabaseUnavailable):
        await session.run(unit)
    assert len(runs) == 3


# Between the two.


@pytest.fixture
def wire(database_address: DatabaseAddress) -> Iterator[Wire]:
    server = Path(str(conninfo_to_dict(database_address.url)["host"])) / SOCKET
    with tempfile.TemporaryDirectory(prefix="hooksaga-wire-") as folder:
        wire = Wire(Path(folder) / "wire", server)
        yield wire
        wire.close()


@pytest.fixture
async def through(wire: Wire, database_address: DatabaseAddress) -> AsyncIterator[Session]:
    """A session that has been used, through the wire."""
    name = conninfo_to_dict(database_address.url)["dbname"]
    session = Session(replace(database_address, url=make_conninfo(wire.url, dbname=name)), Role.INGEST)
    await session.run(pid)
    yield session
    await session.close()


@pytest.mark.guarantee(
    Promise.DATABASE, "idle connections closed on the way: no call fails", "no call failed"
)
async def test_a_connection_that_is_closed_on_the_way_is_replaced_unnoticed(
    through: Session, wire: Wire, seed: Seed
) -> None:
    first = await through.run(pid)
    wire.cut_all()
    await until_gone(seed, first)
    await through.run(accept(WITHOUT_KEY))
    assert await seed.value("SELECT count(*) FROM events") == 1


@pytest.mark.parametrize(
    ("unit", "point", "loss", "events"),
    [
        (accept(WITHOUT_KEY), "accept_events.insert_events", Loss.LOST, 0),
        (accept(WITH_KEY), "accept_events.insert_events", Loss.UNANSWERED, 1),
        (in_transaction, "COMMIT of accept_events.insert_events", Loss.LOST, 0),
        (in_transaction, "COMMIT of accept_events.insert_events", Loss.UNANSWERED, 1),
    ],
)
@pytest.mark.guarantee(
    Promise.DATABASE, "a COMMIT whose answer is lost is never run again by itself", "told as 503"
)
async def test_what_may_have_been_committed_is_not_run_again(
    through: Session, wire: Wire, seed: Seed, unit: Unit, point: str, loss: Loss, events: int
) -> None:
    wire.arm(point, loss)
    with pytest.raises(DatabaseUnavailable):
        await through.run(unit)
    assert wire.has_struck
    assert await seed.value("SELECT count(*) FROM events") == events


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.guarantee(Promise.DATABASE, "a connection lost within a transaction", "run again on another")
async def test_a_transaction_that_is_lost_before_its_commit_is_run_again(
    through: Session, wire: Wire, seed: Seed, loss: Loss
) -> None:
    wire.arm("accept_events.insert_events", loss)
    await through.run(in_transaction)
    assert wire.has_struck
    assert await seed.value("SELECT count(*) FROM events") == 1


@pytest.mark.skipif(os.name == "nt", reason="needs SIGSTOP")
async def test_a_peer_that_has_fallen_silent_is_noticed_before_a_statement_depends_on_it(
    database_address: DatabaseAddress, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a NAT that dropped the connection: no answer, not even a refusal."""
    session = Session(replace(database_address, connect_timeout_seconds=1), Role.INGEST)
    first = await session.run(pid)
    monkeypatch.setattr(database, "IDLE_CHECK_SECONDS", 0)
    os.kill(first, signal.SIGSTOP)
    try:
        await session.run(accept(WITHOUT_KEY))
        assert await session.run(pid) != first
    finally:
        os.kill(first, signal.SIGCONT)
    assert await seed.value("SELECT count(*) FROM events") == 1
    await session.close()
