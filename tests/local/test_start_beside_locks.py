"""`up` starts although another session has locked rows that its start would change, and leaves those as they are."""

from pathlib import Path
from typing import Any

import pytest

from hooksaga.adapters.database import Connection, DatabaseAddress, Role
from hooksaga.local import clear_headers
from hooksaga.local.system import LocalSystem
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from hooksaga.runtime import telemetry
from hooksaga.runtime.metrics import NotMeasured
from hooksaga.runtime.settings import Settings, read_settings
from tests.conftest import Connect
from tests.database.seed import Seed

IN_CLEAR = """SELECT id FROM subscriptions WHERE headers @> '{"x-a": "hush"}'"""
KEY = generate_api_key()


@pytest.fixture
def settings(database_address: DatabaseAddress, seed: Seed, tmp_path: Path) -> Settings:
    return read_settings(
        database_url=database_address.url, data_dir=tmp_path, secrets_key=seed.secrets_key, api_key=KEY
    )


@pytest.fixture
async def somebody(connect: Connect) -> Connection:
    """The session that holds the locks."""
    return await connect(Role.OWNER)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    told: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        clear_headers.logger, "warning", lambda text, **more: told.append((text, more["extra"]))
    )
    return told


async def start_and_stop(settings: Settings) -> str:
    """The link that is printed at the start."""
    system = LocalSystem(settings, port=0)
    url = await system.start()
    try:
        return await system.console_link(url)
    finally:
        await system.stop()
        telemetry.measure_with(NotMeasured())


async def test_header_values_are_sealed_around_a_locked_subscription(
    settings: Settings, seed: Seed, somebody: Connection, warnings: list[tuple[str, Any]]
) -> None:
    """With one warning; the next start seals the one that was locked."""
    held, _, _ = [await seed.subscription() for _ in range(3)]
    await seed.connection.execute("""UPDATE subscriptions SET headers = '{"x-a": "hush"}'""")
    async with somebody.transaction():
        await somebody.execute("SELECT FROM subscriptions WHERE id = %s FOR UPDATE", [held])
        await start_and_stop(settings)
        assert await seed.rows(IN_CLEAR) == [{"id": held}]
    ((text, extra),) = warnings
    assert (text, extra["subscriptions"]) == ("header values stay in plain text", 1)
    await start_and_stop(settings)
    assert await seed.rows(IN_CLEAR) == []
    assert len(warnings) == 1


async def test_a_locked_key_and_a_locked_old_link_stop_no_start(
    settings: Settings, seed: Seed, somebody: Connection
) -> None:
    """The key is there already, and old links are deleted when a new one is made."""
    key_id = await create_api_key(seed.connection, KEY, name="before")
    await seed.connection.execute(
        "INSERT INTO console_sign_ins SELECT sha256(n::text::bytea), %s, now() FROM generate_series(1, 3) AS n",
        [key_id],
    )
    async with somebody.transaction():
        await somebody.execute("UPDATE api_keys SET name = 'theirs' WHERE id = %s", [key_id])
        await somebody.execute("SELECT FROM console_sign_ins WHERE token_sha256 = sha256('2') FOR UPDATE")
        assert "/console/sign-in?token=" in await start_and_stop(settings)
        left = "SELECT token_sha256 = sha256('2') AS held, expires_at > now() AS new FROM console_sign_ins"
        rows = await seed.rows(left + " ORDER BY expires_at")
        assert rows == [{"held": True, "new": False}, {"held": False, "new": True}]
    assert await create_api_key(seed.connection, KEY, name="again") == key_id
    assert await seed.value("SELECT name FROM api_keys") == "theirs"


async def test_a_session_is_ended_around_a_locked_old_one(
    seed: Seed, somebody: Connection, connect: Connect
) -> None:
    admin = await connect(Role.ADMIN)
    await admin.execute("SET lock_timeout = '500ms'")
    old = "INSERT INTO ended_sessions VALUES (sha256('1'), '2020-01-01'), (sha256('2'), '2020-01-01')"
    await seed.connection.execute(old)
    async with somebody.transaction():
        await somebody.execute("SELECT FROM ended_sessions WHERE session_sha256 = sha256('1') FOR UPDATE")
        await admin.execute("SELECT end_sessions(ARRAY[sha256('3')], now() + interval '1 hour', now())")
    rows = await seed.rows("SELECT session_sha256 = sha256('2') AS gone FROM ended_sessions")
    assert rows == [{"gone": False}, {"gone": False}]
