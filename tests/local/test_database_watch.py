"""The watch on an embedded server that is killed."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from hooksaga.local import database_watch, postmaster
from hooksaga.local.database_watch import DatabaseWatch
from hooksaga.local.postgres import EmbeddedPostgres, EmbeddedPostgresError

pytestmark = [pytest.mark.database, pytest.mark.faults]


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-watch-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """Started."""
    server = EmbeddedPostgres(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_watch, "LOOK_SECONDS", 0.05)


@asynccontextmanager
async def watched(server: EmbeddedPostgres) -> AsyncIterator["asyncio.Task[None]"]:
    watching = asyncio.create_task(DatabaseWatch(server).run())
    try:
        yield watching
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError, EmbeddedPostgresError):
            await watching


def kill(folder: Path) -> int:
    """SIGKILL to the server; the number that it had."""
    running = postmaster.running_on(folder / "postgres")
    assert running is not None
    psutil.Process(running.pid).kill()
    return running.pid


class Restarts:
    """Counts those that are over: a server that is killed amid one makes it fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        restart = EmbeddedPostgres.restart

        def counted(server: EmbeddedPostgres) -> None:
            restart(server)
            self.done += 1

        monkeypatch.setattr(EmbeddedPostgres, "restart", counted)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(60):
            while self.done < number:
                await asyncio.sleep(0.02)


@pytest.fixture
def restarts(monkeypatch: pytest.MonkeyPatch) -> Restarts:
    return Restarts(monkeypatch)


async def test_a_killed_server_is_started_again_at_the_same_address(
    folder: Path, server: EmbeddedPostgres, restarts: Restarts
) -> None:
    url = server.start()
    async with watched(server) as watching:
        old_pid = kill(folder)
        await restarts.until(1)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert not watching.done()
    running = postmaster.running_on(folder / "postgres")
    assert running is not None
    assert running.pid != old_pid


async def test_a_server_that_dies_again_and_again_is_given_up(
    folder: Path, server: EmbeddedPostgres, restarts: Restarts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_watch, "MAX_RESTARTS", 1)
    async with watched(server) as watching:
        kill(folder)
        await restarts.until(1)
        kill(folder)
        async with asyncio.timeout(10):
            with pytest.raises(EmbeddedPostgresError, match="died 2 times within 60 s"):
                await asyncio.shield(watching)
    assert not server.is_running()


async def test_deaths_of_long_ago_do_not_count(
    folder: Path, server: EmbeddedPostgres, restarts: Restarts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_watch, "MAX_RESTARTS", 1)
    monkeypatch.setattr(database_watch, "WITHIN_SECONDS", 0.0)
    async with watched(server):
        for number in (1, 2):
            kill(folder)
            await restarts.until(number)
