"""The embedded PostgreSQL of `hooksaga up` is killed: the process starts it again, or ends for its supervisor."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.promises import Promise
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ENDS_WITHIN_SECONDS = 10


@pytest.fixture
def up(folder: Path) -> Iterator[UpProcess]:
    process = UpProcess(folder, ensure_certificates(folder))
    process.start()
    wait_until(process.said.read_text, "the start is over: until then the death of the database ends it")
    yield process
    process.close()


@pytest.mark.guarantee(
    Promise.DATABASE, "the embedded server killed by SIGKILL", "started again by the process; nothing lost"
)
def test_a_killed_server_is_started_again_and_nothing_is_lost(up: UpProcess, recorder: Recorder) -> None:
    user, pid = Stubborn(up, recorder), up.pid
    subscription, path = user.subscribe(kind := new_name("dies"), "/slow/500")
    events = [user.post(kind, new_name("key"))]
    recorder.wait_for(path, 1)
    up.kill_database()
    events += [user.post(kind, new_name("key")) for _ in range(3)]  # repeats what is answered with 503
    for event in events:
        user.saga_in("Completed", event, subscription)
    assert (up.is_alive, up.pid, user.restarts) == (True, pid, 0)
    assert "embedded database restarted" in up.log.read_text()
    assert findings(up.server.start()) == []


@pytest.mark.guarantee(
    Promise.DATABASE,
    "the embedded server killed, and a data folder in which it cannot start",
    "the process ends within 10 s with exit code 1 and the server's own words",
)
def test_a_server_that_cannot_start_again_ends_the_process(up: UpProcess, recorder: Recorder) -> None:
    """Although a POST hangs, and a client that has sent half a request."""
    user = Stubborn(up, recorder)
    _, path = user.subscribe(kind := new_name("dies"), "/hang", timeout_seconds=30)
    user.post(kind, new_name("key"))
    recorder.wait_for(path, 1)
    with socket.create_connection(("127.0.0.1", up.port)) as half_sent:
        half_sent.sendall(b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
        with (up.folder / "postgres" / "postgresql.auto.conf").open("a") as settings:
            settings.write("no_such_setting = 1\n")
        assert_ends(up, up.kill_database)
    said = up.log.read_text()
    assert "hooksaga: PostgreSQL in" in said
    assert (
        'unrecognized configuration parameter "no_such_setting"'
        in said.rpartition("hooksaga: PostgreSQL in")[2]
    )
    assert "Traceback" not in said.rpartition("hooksaga: PostgreSQL in")[2]
    (up.folder / "postgres" / "postgresql.auto.conf").write_text("")


@pytest.mark.guarantee(
    Promise.DATABASE,
    "the folder of the embedded server moved away",
    "the process ends within 10 s and makes no new database",
)
def test_a_database_that_is_no_longer_there_is_not_replaced(up: UpProcess) -> None:
    database = up.folder / "postgres"
    assert_ends(up, lambda: database.rename(up.folder / "moved"))
    assert not database.exists()
    assert "the folder contains no database" in up.log.read_text()
    (up.folder / "moved").rename(database)


def test_sigterm_beside_a_dead_server_is_obeyed(up: UpProcess) -> None:
    """The watch does not start again what is to stop."""
    up.kill_database()
    assert up.terminate() == 0
    assert not up.server.is_running()


def assert_ends(up: UpProcess, strike: Callable[[], object]) -> None:
    began = time.monotonic()
    strike()
    wait_until(lambda: not up.is_alive, "the process ends", ENDS_WITHIN_SECONDS)
    assert time.monotonic() - began < ENDS_WITHIN_SECONDS
    assert up.exit_code == 1
