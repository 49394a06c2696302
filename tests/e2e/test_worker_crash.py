"""A worker that is killed in the middle of a POST, and one that is asked to stop."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.promises import Promise

pytestmark = [
    pytest.mark.faults,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


LEASE_SECONDS = 60
SECONDS_AGAIN = 10
"""A few, and many fewer than a lease, on a machine that does other things too."""


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


IN_FLIGHT = 40
JOBS = """
    SELECT id, status::text, claim_count, lost_leases, worker_id, lease_until > now() AS runs
      FROM webhook_delivery_jobs ORDER BY id"""


@pytest.mark.guarantee(Promise.ARRIVES, "killed while a receiver hangs")
def test_what_a_killed_worker_had_in_flight_arrives_again_at_once(up: UpProcess, recorder: Recorder) -> None:
    """The POSTs hang, the process dies: the next one delivers the same jobs while the leases would still run, with the
    same ids and the same attempt numbers. One lost lease is counted for each."""
    up.start()
    paths = [f"/hang/crash/{number}" for number in range(4)]
    for path in paths:
        subscribe(up, recorder, path, "crash.hanging")
    events = [post(up.api, "crash.hanging", b'{"a": 1.%d}' % n) for n in range(IN_FLIGHT // len(paths))]
    wait_until(lambda: len(recorder.events()) >= IN_FLIGHT, "all POSTs are in flight")
    killed = up.pid
    up.kill()
    held = up.rows(JOBS)
    assert {(job["status"], job["claim_count"], job["runs"]) for job in held} == {("Leased", 1, True)}
    assert len(held) == IN_FLIGHT
    for path in paths:
        recorder.script(path, 200)
    up.start()
    ready = time.monotonic()

    def all_again() -> bool:
        return Counter(one.header("webhook-id") for one in recorder.events()) == Counter(events * 8)

    wait_until(all_again, "every event arrives again, at every subscription")
    assert time.monotonic() - ready < SECONDS_AGAIN < LEASE_SECONDS
    arrived = recorder.events()
    assert {one.header("hooksaga-attempt") for one in arrived} == {"1"}
    assert len({one.body for one in arrived}) == len(events)
    wait_until(lambda: ended(up) == Counter(Completed=IN_FLIGHT), "all sagas are completed")
    jobs = up.rows(JOBS)
    assert [job["id"] for job in jobs] == [job["id"] for job in held]
    assert {(job["claim_count"], job["lost_leases"]) for job in jobs} == {(2, 1)}
    assert {int(job["worker_id"].split(":")[1]) for job in jobs} == {up.pid} != {killed}
    assert findings(up.server.start()) == []


def ended(up: UpProcess) -> Counter[str]:
    """Sagas by their states."""
    rows = up.rows("SELECT status::text FROM webhook_delivery_sagas")
    return Counter(row["status"] for row in rows)


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
