"""Start and stop of a process, as far as others depend on it."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.secret_box import generate_key
from hooksaga.local import system as local_system
from hooksaga.local.system import LocalSystem, is_in_use
from hooksaga.operations.work_state import is_at_rest
from hooksaga.runtime import telemetry
from hooksaga.runtime.metrics import NotMeasured
from hooksaga.runtime.settings import InvalidSettings, read_settings
from hooksaga.worker.polling import PollingWorker
from tests.database.seed import Seed


async def test_a_fault_that_ends_the_loops_is_told_and_everything_else_is_closed(
    database_address: DatabaseAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: PollingWorker) -> NoReturn:
        raise RuntimeError("a fault of ours")

    told: list[tuple[str, object]] = []
    monkeypatch.setattr(PollingWorker, "run", broken)
    monkeypatch.setattr(
        local_system.logger, "error", lambda text, **more: told.append((text, more["exc_info"]))
    )
    system = LocalSystem(read_settings(database_url=database_address.url, data_dir=tmp_path), port=0)
    await system.start()
    async with asyncio.timeout(20):
        await system.wait()
        await system.stop()
    telemetry.measure_with(NotMeasured())
    assert [(text, str(fault)) for text, fault in told] == [("part ended by a fault", "a fault of ours")]
    assert not await is_in_use(database_address)


async def test_it_notes_that_it_is_at_work_and_that_it_has_stopped(
    database_address: DatabaseAddress, seed: Seed, tmp_path: Path
) -> None:
    assert not await is_at_rest(seed.connection)  # a new database: whatever waits there waits too long
    system = LocalSystem(read_settings(database_url=database_address.url, data_dir=tmp_path), port=0)
    for _ in range(2):
        await system.start()
        async with asyncio.timeout(10):
            while await is_at_rest(seed.connection):
                await asyncio.sleep(0.01)
        await system.stop()
        assert await is_at_rest(seed.connection)
    telemetry.measure_with(NotMeasured())


async def test_a_second_machine_with_a_key_of_its_own_does_not_start(
    database_address: DatabaseAddress, seed: Seed, tmp_path: Path
) -> None:
    """It would fail deliveries that the first one can sign."""
    await seed.subscription()
    alone = LocalSystem(read_settings(database_url=database_address.url, data_dir=tmp_path), port=0)
    with pytest.raises(InvalidSettings, match=r"HOOKSAGA_SECRETS_KEY: .*rotate-secret"):
        await alone.start()
    for key in (seed.secrets_key, generate_key()):  # one that is given is taken: theirs may be lost
        given = read_settings(database_url=database_address.url, data_dir=tmp_path, secrets_key=key)
        system = LocalSystem(given, port=0)
        await system.start()
        await system.stop()
    telemetry.measure_with(NotMeasured())
