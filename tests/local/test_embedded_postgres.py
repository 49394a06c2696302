"""The embedded server against what a laptop does to it: killed owners, killed servers, two starts at once."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from hooksaga.local import postmaster
from hooksaga.local.postgres import EmbeddedPostgres, EmbeddedPostgresError
from tests.scheduling import long_but

pytestmark = [pytest.mark.database, pytest.mark.faults]

START = """
import sys, time
from pathlib import Path
from hooksaga.local.postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent() -> Iterator[Path]:
    """Not pytest's own folder: every pytest that starts closes that one to all but its user, and root's database runs
    as another account."""
    with tempfile.TemporaryDirectory(prefix="hooksaga-test-") as path:
        Path(path).chmod(0o711)
        yield Path(path)


@pytest.fixture
def data_dir(parent: Path) -> Iterator[Path]:
    path = parent / "data"
    yield path
    EmbeddedPostgres(path).stop()


@pytest.fixture
def server(data_dir: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir)


@pytest.fixture
def starter(data_dir: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Runs start() in a process, in a session of its own, that then waits to be killed."""
    processes: list[subprocess.Popen[str]] = []

    def spawn() -> "subprocess.Popen[str]":
        args = [sys.executable, "-c", START, str(data_dir)]
        processes.append(subprocess.Popen(args, stdout=subprocess.PIPE, text=True, start_new_session=True))
        return processes[-1]

    yield spawn
    for process in processes:
        process.kill()
        process.communicate()


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def pid_of(data_dir: Path) -> int:
    server = postmaster.running_on(data_dir / "postgres")
    assert server is not None
    return server.pid


def is_alive(pid: int) -> bool:
    """A zombie is not: where the first process is no real init, nobody buries orphans."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def url_from(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_starts_with_durable_settings(server: EmbeddedPostgres) -> None:
    assert not server.is_running()
    url = server.start()
    assert server.is_running()
    assert "/hooksaga?" in url
    assert ask(url, "SELECT current_setting('server_version_num')::int / 10000") == 18
    assert ask(url, "SELECT current_database() || '/' || current_user") == "hooksaga/postgres"
    wanted = {"fsync": "on", "synchronous_commit": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}
    wanted |= {"jit": "off", "max_connections": "200", "listen_addresses": "", "TimeZone": "UTC"}
    assert {name: ask(url, f"SHOW {name}") for name in wanted} == wanted


@pytest.mark.skipif(sys.platform == "win32", reason="permission bits")
def test_only_its_owner_reaches_the_data_and_the_socket(server: EmbeddedPostgres, data_dir: Path) -> None:
    server.start()
    running = postmaster.running_on(data_dir / "postgres")
    assert running is not None
    for folder in (data_dir / "postgres", Path(running.socket_dir)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_start_uses_the_server_that_runs(server: EmbeddedPostgres, data_dir: Path) -> None:
    url = server.start()
    pid = pid_of(data_dir)
    assert EmbeddedPostgres(data_dir).start() == url
    assert pid_of(data_dir) == pid


def test_stop_stops_it_whoever_started_it_and_start_finds_the_data_again(data_dir: Path) -> None:
    url = EmbeddedPostgres(data_dir).start()
    ask(url, "CREATE TABLE kept AS SELECT 7 AS n")
    with psycopg.connect(url):
        EmbeddedPostgres(data_dir).stop()
    assert not EmbeddedPostgres(data_dir).is_running()
    assert ask(EmbeddedPostgres(data_dir).start(), "SELECT n FROM kept") == 7


def test_stop_without_a_server_is_no_error(server: EmbeddedPostgres, data_dir: Path) -> None:
    server.stop()
    assert not data_dir.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals to process groups")
@pytest.mark.parametrize("signal_name", long_but(("SIGINT", "SIGTERM", "SIGKILL"), "SIGKILL"))
def test_the_server_outlives_its_starter_and_can_be_attached_to(
    server: EmbeddedPostgres,
    data_dir: Path,
    starter: Callable[[], "subprocess.Popen[str]"],
    signal_name: str,
) -> None:
    process = starter()
    url = url_from(process)
    ask(url, "CREATE TABLE kept AS SELECT 7 AS n")
    pid = pid_of(data_dir)
    os.killpg(process.pid, signal.Signals[signal_name])
    process.wait(timeout=30)
    assert server.start() == url
    assert pid_of(data_dir) == pid
    assert ask(url, "SELECT n FROM kept") == 7


def test_a_killed_server_is_recovered(server: EmbeddedPostgres, data_dir: Path) -> None:
    url = server.start()
    ask(url, "CREATE TABLE kept AS SELECT 7 AS n")
    pid = pid_of(data_dir)
    psutil.Process(pid).kill()
    assert ask(server.start(), "SELECT n FROM kept") == 7
    assert pid_of(data_dir) != pid


def test_a_backend_that_outlives_its_killed_server_is_ended(server: EmbeddedPostgres, data_dir: Path) -> None:
    """No other server could start beside it, and nobody else would ever end it."""
    url = server.start()
    busy = "DO $$ BEGIN LOOP END LOOP; END $$"
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.pgconn.send_query(busy.encode())
        backend = connection.info.backend_pid
        psutil.Process(pid_of(data_dir)).kill()
        wait_until(lambda: not server.is_running())
        assert is_alive(backend)
        assert ask(server.start(), "SELECT 1") == 1
        assert not is_alive(backend)


def test_a_backend_that_stands_still_is_ended_too(
    server: EmbeddedPostgres, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process handles no signal but SIGKILL."""
    monkeypatch.setattr(postmaster, "KILL_ORPHANS_AFTER_SECONDS", 0.2)
    with closing(psycopg.connect(server.start(), autocommit=True)) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        psutil.Process(pid_of(data_dir)).kill()
        wait_until(lambda: not server.is_running())
        assert ask(server.start(), "SELECT 1") == 1
        assert not is_alive(backend)


def test_a_restart_makes_no_new_database(server: EmbeddedPostgres, data_dir: Path) -> None:
    """An empty one in place of one that was removed would look as if all events were lost."""
    server.start()
    server.stop()
    (data_dir / "postgres").rename(data_dir / "moved")
    with pytest.raises(EmbeddedPostgresError, match="the folder contains no database"):
        server.restart()
    assert not (data_dir / "postgres").exists()


def test_the_number_of_a_dead_server_given_to_another_process(
    server: EmbeddedPostgres, data_dir: Path
) -> None:
    server.start()
    server.stop()
    lines = [str(os.getpid()), str(data_dir / "postgres"), "1700000000", "5432"]
    (data_dir / "postgres" / "postmaster.pid").write_text("\n".join([*lines, "", "", "", "ready   "]))
    assert not server.is_running()
    assert ask(server.start(), "SELECT 1") == 1


def test_two_processes_at_once_get_one_server(
    data_dir: Path, starter: Callable[[], "subprocess.Popen[str]"]
) -> None:
    first, second = starter(), starter()
    urls = {url_from(first), url_from(second)}
    assert len(urls) == 1
    assert ask(urls.pop(), "SELECT 1") == 1


def test_an_initdb_that_was_killed_leaves_nothing_behind(server: EmbeddedPostgres, data_dir: Path) -> None:
    half = data_dir / "postgres.new-killed"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    assert ask(server.start(), "SELECT 1") == 1
    assert not half.exists()


def test_a_path_too_long_for_a_socket(parent: Path) -> None:
    server = EmbeddedPostgres(parent / ("long path, " * 10) / "data")
    try:
        assert ask(server.start(), "SELECT 1") == 1
    finally:
        server.stop()


def test_a_server_that_gives_up_says_why(server: EmbeddedPostgres, data_dir: Path) -> None:
    server.start()
    server.stop()
    with (data_dir / "postgres" / "postgresql.auto.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        server.start()
