"""A worker that is killed in the middle of a POST, and one that is asked to stop."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Arrived, Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.promises import Promise

pytestmark = [
    pytest.mark.faults,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-crash-"))
    process = UpProcess(folder, certificates)
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


def subscribe(up: UpProcess, recorder: Recorder, path: str, event_type: str) -> int:
    wanted = {"event_type": event_type, "callback_url": recorder.url + path, "timeout_seconds": 30}
    created = up.api.good("POST", "/v1/subscriptions", wanted)
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
    return created["id"]


@pytest.mark.guarantee(Promise.ARRIVES, "killed while a receiver hangs")
def test_killed_worker_costs_a_lease_and_nothing_else(up: UpProcess, recorder: Recorder) -> None:
    """The POST hangs, the process dies, the lease ends: the same job is delivered by another process, with the
    same id and the same attempt number."""
    up.start()
    subscribe(up, recorder, "/hang/crash", "crash.hanging")
    subscribe(up, recorder, "/ok/crash", "crash.other")
    event_id = post(up.api, "crash.hanging", b'{"a": 1.10}')
    recorder.wait_for("/hang/crash", 1)
    other_id = post(up.api, "crash.other")
    recorder.wait_for("/ok/crash", 1)
    up.kill()

    query = "SELECT id, status::text, claim_count, worker_id FROM webhook_delivery_jobs ORDER BY id"
    held = [job for job in up.rows(query) if job["status"] == "Leased"]
    assert [job["claim_count"] for job in held if f":{up.pid}:" in job["worker_id"]][:1] == [1]
    recorder.script("/hang/crash", 200)
    up.start()
    later_id = post(up.api, "crash.hanging", b'"later"')
    arrived = recorder.wait_for("/hang/crash", 2)
    # The new process is at work, but the lease has not ended: nobody may take that job yet.
    assert [one.header("webhook-id") for one in arrived] == [event_id, later_id]
    up.kill()
    assert up.end_leases_of_dead_workers() >= 1
    up.start()

    def again() -> list[Arrived]:
        found = [one for one in recorder.events("/hang/crash") if one.header("webhook-id") == event_id]
        return found if len(found) >= 2 else []

    arrived = wait_until(again, "the event arrives again")
    assert {one.body for one in arrived} == {b'{"a": 1.10}'}
    assert {one.header("hooksaga-attempt") for one in arrived} == {"1"}

    def ended() -> dict[str, object] | None:
        saga = up.api.good("GET", f"/v1/events/{event_id}")["sagas"][0]
        return saga if saga["status"] == "Completed" else None

    saga = wait_until(ended, "the saga is completed")
    assert saga["attempt_count"] == 1
    jobs = {job["id"]: job for job in up.rows(query)}
    assert jobs[held[0]["id"]]["claim_count"] == 2  # the same row
    assert f":{up.pid}:" in jobs[held[0]["id"]]["worker_id"]
    assert up.api.good("GET", f"/v1/events/{other_id}")["sagas"][0]["status"] == "Completed"
    assert findings(up.server.start()) == []


@pytest.mark.guarantee(Promise.ARRIVES, "SIGTERM with POSTs in flight")
def test_sigterm_lets_what_is_in_flight_end_and_loses_nothing(up: UpProcess, recorder: Recorder) -> None:
    up.start()
    subscribe(up, recorder, "/slow/800/stop", "stop.slow")
    events = [post(up.api, "stop.slow", b"%d" % n) for n in range(20)]
    recorder.wait_for("/slow/800/stop", 1)
    assert up.terminate() == 0
    # Whatever had begun has its result; whatever had not is there to be claimed: nothing is left leased.
    assert up.rows("SELECT id FROM webhook_delivery_jobs WHERE status = 'Leased'") == []
    up.start()

    def completed() -> bool:
        rows = up.rows("SELECT status::text FROM webhook_delivery_sagas")
        return [row["status"] for row in rows] == ["Completed"] * len(events)

    wait_until(completed, "all sagas are completed")
    arrived = [one.header("webhook-id") for one in recorder.events("/slow/800/stop")]
    assert sorted(arrived) == sorted(events)
    assert findings(up.server.start()) == []
