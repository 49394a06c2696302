"""A session outlives its connection: it lets go of a broken one, runs a lost race again, and says what is wrong."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hooksaga.adapters import database
from hooksaga.adapters.database import (
    Connection,
    DatabaseAddress,
    Role,
    Session,
    Sessions,
    connect_as,
    fetch_dicts,
    transaction,
)
from hooksaga.core.errors import DatabaseUnavailable, NotFound, RowRefused, SchemaMismatch
from tests.conftest import Connect, SessionOf
from tests.database.seed import Seed, pid, until_blocked
from tests.faults.promises import Promise


@pytest.fixture
async def session(session_of: SessionOf) -> Session:
    return session_of(Role.OWNER)


async def insert_event(connection: Connection) -> None:
    await connection.execute("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")


async def test_one_connection_serves_many_units(session: Session) -> None:
    assert await session.run(pid) == await session.run(pid)


async def test_a_session_logs_in_as_its_role(session_of: SessionOf) -> None:
    names: list[str] = []
    for role in Role:
        (row,) = await session_of(role).run(lambda c: fetch_dicts(c, "SELECT current_user::text AS who", {}))
        names.append(row["who"])
    assert names == ["postgres" if role is Role.OWNER else role.value for role in Role]


async def test_a_server_that_has_become_read_only_is_let_go_of(session: Session, seed: Seed) -> None:
    name = await seed.value("SELECT quote_ident(current_database())")
    await seed.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    first = await session.run(pid)
    with pytest.raises(DatabaseUnavailable, match="read-only"):
        await session.run(insert_event)
    await seed.connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    await session.run(insert_event)
    assert await session.run(pid) != first


@pytest.mark.guarantee(
    Promise.DATABASE, "a server that became read-only, and is asked only for what it can answer", "let go of"
)
async def test_a_server_that_can_only_be_read_is_let_go_of_by_those_who_only_read(
    session_of: SessionOf,
) -> None:
    """It may be the old primary, whose rows no longer change; reads would never fail."""
    session = session_of(Role.ROUTER)

    async def become_read_only(connection: Connection) -> int:
        await connection.execute("SET default_transaction_read_only = on")
        return await pid(connection)

    async def become_read_only_and_find_nothing(connection: Connection) -> None:
        await become_read_only(connection)
        raise LookupError(str(await pid(connection)))

    first = await session.run(become_read_only)
    second = await session.run(pid)
    assert second != first
    assert await session.run(pid) == second
    with pytest.raises(LookupError, match=str(second)):
        await session.run(become_read_only_and_find_nothing)
    assert await session.run(pid) != second


@pytest.mark.guarantee(Promise.DATABASE, "a deadlock: the whole unit is run again")
async def test_a_deadlock_runs_the_whole_unit_again(session: Session, connect: Connect, seed: Seed) -> None:
    first, second = await seed.subscription(), await seed.subscription()
    other = await connect(Role.OWNER)
    lock = "SELECT id FROM subscriptions WHERE id = %s FOR UPDATE"
    runs: list[int] = []
    tasks: list[asyncio.Task[object]] = []

    async def unit(connection: Connection) -> None:
        runs.append(len(runs))
        async with transaction(connection):
            await connection.execute("SET LOCAL deadlock_timeout = '10ms'")
            await connection.execute(lock, [first])
            if not tasks:
                tasks.append(asyncio.create_task(other.execute(lock, [first])))
                await until_blocked(seed.connection, other)
            await connection.execute(lock, [second])

    async with other.transaction():
        await other.execute("SET LOCAL deadlock_timeout = '20s'")
        await other.execute(lock, [second])
        running = asyncio.create_task(session.run(unit))
        while not tasks:
            await asyncio.sleep(0.01)
        await tasks[0]
    await running
    assert len(runs) > 1


@pytest.mark.guarantee(Promise.DATABASE, "a serialization failure every time: given up, told")
@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_race_that_is_lost_every_time_is_given_up(session: Session, state: str) -> None:
    runs: list[int] = []

    async def unit(connection: Connection) -> None:
        runs.append(len(runs))
        async with transaction(connection):
            await connection.execute(f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$".encode())

    with pytest.raises(DatabaseUnavailable):
        await session.run(unit)
    assert len(runs) == database.RERUNS


@pytest.mark.guarantee(Promise.DATABASE, "statement timeout")
async def test_a_statement_that_takes_too_long_is_not_our_callers_fault(session: Session) -> None:
    async def unit(connection: Connection) -> None:
        async with transaction(connection):
            await connection.execute("SET LOCAL statement_timeout = '20ms'")
            await connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(DatabaseUnavailable):
        await session.run(unit)
    assert await session.run(pid)


async def test_a_lock_that_is_not_to_be_had_is_not_our_callers_fault(
    session: Session, connect: Connect, seed: Seed
) -> None:
    await seed.subscription()
    other = await connect(Role.OWNER)

    async def unit(connection: Connection) -> None:
        async with transaction(connection):
            await connection.execute("SET LOCAL lock_timeout = '20ms'")
            await connection.execute("SELECT id FROM subscriptions FOR UPDATE")

    async with other.transaction():
        await other.execute("SELECT id FROM subscriptions FOR UPDATE")
        with pytest.raises(DatabaseUnavailable):
            await session.run(unit)


@pytest.mark.guarantee(Promise.DATABASE, "a server that hangs")
async def test_a_database_that_hangs_is_given_up_and_its_connection_closed(
    database_address: DatabaseAddress, seed: Seed
) -> None:
    session = Session(replace(database_address, unit_timeout_seconds=0.3), Role.OWNER)
    first = await session.run(pid)
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await session.run(lambda connection: connection.execute("SELECT pg_sleep(60)"))
    assert await session.run(pid) != first
    await session.close()


async def test_no_database_at_all_is_unavailable(database_address: DatabaseAddress) -> None:
    nowhere = Session(DatabaseAddress("postgresql://nobody@127.0.0.1:1/none"), Role.OWNER)
    with pytest.raises(DatabaseUnavailable):
        await nowhere.run(pid)
    gone = Session(replace(database_address, url=database_address.url.replace("test_", "none_")), Role.OWNER)
    with pytest.raises(DatabaseUnavailable):
        await gone.run(pid)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events (event_type, payload) VALUES ('', '{}')",
        "INSERT INTO events (event_type, payload) VALUES ('a', '{')",
        "INSERT INTO routing_outbox (event_id, created_at) VALUES (1, now())",
        "DELETE FROM events",
        "SELECT 2147483648::int",
    ],
)
async def test_a_value_that_is_refused_is_the_rows_fault_and_costs_no_connection(
    session: Session, statement: str
) -> None:
    first = await session.run(pid)
    with pytest.raises(RowRefused):
        await session.run(lambda connection: connection.execute(statement.encode()))
    assert await session.run(pid) == first


async def test_a_table_that_is_not_there_tells_of_a_missing_migration(session: Session) -> None:
    with pytest.raises(SchemaMismatch, match="no_such_table"):
        await session.run(lambda connection: connection.execute("SELECT * FROM no_such_table"))
    assert await session.run(pid)


async def test_a_unit_that_fails_leaves_no_transaction_open(session: Session, seed: Seed) -> None:
    async def unit(connection: Connection) -> None:
        await connection.execute("BEGIN")
        await insert_event(connection)
        raise NotFound("nothing_here", "there is nothing here")

    with pytest.raises(NotFound):
        await session.run(unit)
    await session.run(insert_event)
    assert await seed.value("SELECT count(*) FROM events") == 1


async def test_a_unit_that_is_cancelled_leaves_no_transaction_open(session: Session, seed: Seed) -> None:
    begun = asyncio.Event()

    async def unit(connection: Connection) -> None:
        async with transaction(connection):
            await insert_event(connection)
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(session.run(unit))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await session.run(insert_event)
    assert await seed.value("SELECT count(*) FROM events") == 1


async def test_units_at_the_same_time_take_turns(session: Session) -> None:
    inside = 0

    async def unit(connection: Connection) -> int:
        nonlocal inside
        inside += 1
        assert inside == 1
        async with transaction(connection):
            answer = await pid(connection)
        inside -= 1
        return answer

    assert len(set(await asyncio.gather(*(session.run(unit) for _ in range(20))))) == 1


@pytest.fixture
async def sessions(database_address: DatabaseAddress) -> AsyncIterator[Sessions]:
    pool = Sessions(database_address, Role.OWNER, 3)
    yield pool
    await pool.close()


@pytest.mark.guarantee(Promise.DATABASE, "more callers than connections")
async def test_more_callers_than_sessions_wait_and_all_are_served(sessions: Sessions) -> None:
    full = asyncio.Barrier(3)
    inside = 0

    async def unit(connection: Connection) -> int:
        nonlocal inside
        inside += 1
        assert inside <= 3
        await full.wait()
        inside -= 1
        return await pid(connection)

    assert len(set(await asyncio.gather(*(sessions.run(unit) for _ in range(30))))) == 3


async def test_sessions_that_broke_are_used_again(sessions: Sessions, seed: Seed) -> None:
    pids = set(await asyncio.gather(*(sessions.run(pid) for _ in range(9))))
    for backend in pids:
        await seed.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
    answers = await asyncio.gather(*(sessions.run(pid) for _ in range(9)))
    assert pids.isdisjoint(answers)


async def test_texts_are_utf_8_whatever_the_environment_asks_for(
    database_address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    connection = await connect_as(database_address, Role.OWNER)
    try:
        query = "SELECT %(texts)s::text[] = ARRAY[%(text)s::text] AS same"
        assert await fetch_dicts(connection, query, {"texts": ["\u00e9"], "text": "\u00e9"}) == [
            {"same": True}
        ]
    finally:
        await connection.close()
