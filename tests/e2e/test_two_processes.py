"""`hooksaga up` with a process of the API beside the stages: either may be killed, and neither outlives the other's end
unnoticed."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from hooksaga.local import api_process
from hooksaga.local.tls import Certificates
from hooksaga.worker.loops import POLL_SECONDS
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings

EVENTS = 20


@pytest.fixture
def up(folder: Path, certificates: Certificates) -> Iterator[UpProcess]:
    process = UpProcess(folder, certificates, HOOKSAGA_PROCESSES="2")
    process.log.unlink(missing_ok=True)  # of the test before
    process.start()
    yield process
    process.close()


def api_of(up: UpProcess) -> psutil.Process:
    """The process of the API, once it is there."""

    def found() -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess):
            return next(iter(up.processes()[1:]), None)
        return None

    return wait_until(found, "there is a process of the API")


def subscribe(up: UpProcess, recorder: Recorder) -> tuple[str, str]:
    """The event type of a verified subscription, and its path."""
    kind = new_name("two")
    path = f"/ok/{kind}"
    created = up.api.good(
        "POST", "/v1/subscriptions", {"event_type": kind, "callback_url": recorder.url + path}
    )
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
    return kind, path


def post(up: UpProcess, kind: str) -> str:
    return up.api.good("POST", "/v1/events", {"event_type": kind, "payload": {}})["id"]


def metric(up: UpProcess, name: str) -> float:
    lines = up.api.get("/metrics").body.decode().splitlines()
    (line,) = [one for one in lines if one.startswith(f"{name} ")]
    return float(line.split()[1])


def test_a_killed_api_is_started_again_and_nothing_is_lost(up: UpProcess, recorder: Recorder) -> None:
    kind, path = subscribe(up, recorder)
    events = {post(up, kind) for _ in range(5)}
    assert metric(up, "hooksaga_events_accepted_total") == 5
    first = api_of(up)
    first.kill()
    wait_until(lambda: not first.is_running(), "it has ended")
    events.add(post(up, kind))  # the socket that listens is open: the POST waits for the next process
    assert api_of(up).pid != first.pid
    arrived = recorder.wait_for(path, 6)
    assert {one.header("webhook-id") for one in arrived} == events
    wait_until(lambda: metric(up, "hooksaga_delivery_succeeded_total") == 6, "both processes are on one page")
    assert metric(up, "hooksaga_events_accepted_total") == 6
    assert "api process ended" in up.log.read_text()
    assert up.terminate() == 0
    assert findings(up.server.start()) == []


def test_an_accepted_event_wakes_the_stages_at_once(up: UpProcess, recorder: Recorder) -> None:
    """Without wakes an event would wait half a poll on average."""
    kind, path = subscribe(up, recorder)
    began = time.monotonic()
    for number in range(1, EVENTS + 1):
        post(up, kind)
        recorder.wait_for(path, number)
    assert time.monotonic() - began < EVENTS * POLL_SECONDS / 2


def test_a_killed_up_leaves_no_process(up: UpProcess, recorder: Recorder) -> None:
    kind, path = subscribe(up, recorder)
    child = api_of(up)
    os.kill(up.pid, signal.SIGKILL)
    wait_until(
        lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the API has ended too"
    )
    wait_until(lambda: not up.is_alive, "it is dead")
    up.start()  # on the same port
    event = post(up, kind)
    assert [one.header("webhook-id") for one in recorder.wait_for(path, 1)] == [event]


def test_a_signal_to_the_whole_group_stops_both_once(up: UpProcess) -> None:
    """As Ctrl-C on a terminal does, and systemd."""
    child = api_of(up)
    os.killpg(up.pid, signal.SIGTERM)
    wait_until(lambda: not up.is_alive, "both have stopped")
    assert up.exit_code == 0
    assert not child.is_running()
    assert "api process ended" not in up.log.read_text()
    assert "Traceback" not in up.log.read_text()


def test_an_api_that_ends_again_and_again_ends_up(up: UpProcess) -> None:
    """A supervisor acts then, as for one process."""
    for _ in range(api_process.MAX_RESTARTS + 1):
        child = api_of(up)
        child.kill()
        wait_until(lambda child=child: not child.is_running(), "it has ended")
    wait_until(lambda: not up.is_alive, "up has ended")
    assert up.exit_code == 1
    assert "the process of the API has ended 4 times" in up.log.read_text()


def test_the_metrics_are_there_when_the_database_refuses_the_gauges(
    up: UpProcess, recorder: Recorder
) -> None:
    kind, path = subscribe(up, recorder)
    post(up, kind)
    recorder.wait_for(path, 1)
    gauge = "hooksaga_retention_behind_seconds"

    def page() -> str:
        return up.api.get("/metrics").body.decode()

    up.database().execute("ALTER VIEW retention_lag RENAME TO another_lag")
    wait_until(lambda: gauge not in page(), "the gauges are read anew")  # a page is kept for a moment
    assert "hooksaga_events_accepted_total 1.0" in page()
    up.database().execute("ALTER VIEW another_lag RENAME TO retention_lag")
    wait_until(lambda: f"{gauge} 0" in page(), "the gauges are back")
