"""More connections than the process may have files open: those that are there work, and deliveries go on."""

import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from hooksaga.local.tls import Certificates
from tests.api.http_client import Answer, event_body, read_answer, request_bytes
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.hostile_cases import note

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the limits of a process")

SOFT, HARD = 300, 700
FLOOD = 1200
LIMITED = ("sh", "-c", f'ulimit -S -n {SOFT} && ulimit -H -n {HARD} && exec "$@"', "sh")
GET_HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-flood-"))
    process = UpProcess(folder, certificates, prefix=LIMITED, HOOKSAGA_CONCURRENCY="20")
    process.start()
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may have more files open than the flood."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files(up: UpProcess) -> int:
    """Of the process that has most: that of the API."""
    return max(one.num_fds() for one in up.processes())


def refusal_on(connection: socket.socket) -> Answer | None:
    """Return the server's unsolicited response; None if it waits or closed without one."""
    connection.settimeout(0.001)
    try:
        return read_answer(connection)
    except (OSError, ValueError):
        return None


@pytest.mark.hostile("Clients")
def test_1200_idle_connections(up: UpProcess, recorder: Recorder, many_files: None) -> None:
    assert psutil.Process(up.pid).rlimit(psutil.RLIMIT_NOFILE) == (HARD, HARD), "raised at the start"
    wanted = {"event_type": "flood", "callback_url": recorder.url + "/ok/flood"}
    created = up.api.good("POST", "/v1/subscriptions", wanted)
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
    with ExitStack() as stack, up.api.connect() as before:
        before.sendall(GET_HEALTH)
        assert read_answer(before).status == 200
        flood = [
            stack.enter_context(
                socket.create_connection(
                    ("127.0.0.1", up.port), 20, source_address=(f"127.0.0.{2 + n % 2}", 0)
                )
            )
            for n in range(FLOOD)
        ]
        refusals = [answer for one in flood if (answer := refusal_on(one)) is not None]
        assert {answer.status for answer in refusals} == {503}
        detail = refusals[0].json()["detail"]
        assert detail.startswith(f"file descriptors are short: this process may have {HARD}")
        assert len(refusals) < FLOOD - 300, "those within the bound are kept"
        body = event_body("flood")
        before.sendall(
            request_bytes("POST", "/v1/events", up.api.headers(("content-length", str(len(body)))), body)
        )
        assert read_answer(before).status == 202, "one that is open goes on"
        recorder.wait_for("/ok/flood", 1)
        assert 500 < open_files(up) < HARD
    wait_until(lambda: up.api.get("/healthz").status == 200, "new ones are taken again")
    note("503 too_many_connections beyond those that fit; deliveries go on")
    assert "Traceback" not in up.log.read_text()
    assert findings(up.server.start()) == []


def test_a_limit_that_is_too_low_for_the_settings_is_said(certificates: Certificates) -> None:
    with tempfile.TemporaryDirectory() as folder:
        up = UpProcess(Path(folder), certificates, prefix=LIMITED, HOOKSAGA_CONCURRENCY="1000")
        up.spawn()
        wait_until(lambda: not up.is_alive, "it refuses to start")
        assert up.exit_code == 2
        assert "HOOKSAGA_CONCURRENCY: 1000 POSTs at once need 1064 open files" in up.log.read_text()
