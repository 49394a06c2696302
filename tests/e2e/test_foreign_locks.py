"""Another session holds locks while `up` runs: on an active delivery, a subscription, a saga."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from aiohttp import web

from hooksaga.local.tls import Certificates
from tests.api.running_system import new_name, wait_until
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

SAGAS = "SELECT status::text, count(*) FROM webhook_delivery_sagas GROUP BY status ORDER BY 1"
LEASED = "SELECT id, saga_id FROM webhook_delivery_jobs WHERE status = 'Leased'"
END_LEASE = "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 minute' WHERE id = %s"
OTHERS = 30


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-locks-"))
    process = UpProcess(folder, certificates)
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


def subscribe(up: UpProcess, recorder: Recorder, path: str, event_type: str) -> int:
    wanted = {"event_type": event_type, "callback_url": recorder.url + path, "timeout_seconds": 30}
    created = up.api.good("POST", "/v1/subscriptions", wanted)
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
    return created["id"]


@pytest.mark.guarantee(
    Promise.DATABASE,
    "somebody locks a delivery under way and a subscription with psql, past the end of the lease",
    "all others arrived meanwhile; sent once, nothing dead",
)
def test_locks_of_somebody_else_delay_one_delivery_and_nothing_else(
    up: UpProcess, recorder: Recorder
) -> None:
    may_answer = threading.Event()

    async def answer(_body: bytes) -> web.Response:
        while not may_answer.is_set():
            await asyncio.sleep(0.01)
        return web.Response(status=200)

    up.start()
    slow, quick, both = new_name("slow"), new_name("quick"), new_name("both")
    subscribe(up, recorder, f"/ok/{slow}", slow)
    locked = subscribe(up, recorder, f"/ok/{quick}", quick)
    for path in (f"/ok/{both}/1", f"/ok/{both}/2"):
        subscribe(up, recorder, path, both)
    recorder.script(f"/ok/{slow}", answer)
    post(up.api, slow)
    recorder.wait_for(f"/ok/{slow}", 1)
    (job,) = up.rows(LEASED)

    with psycopg.connect(up.server.start()) as somebody:
        somebody.execute("SET LOCAL session_replication_role = replica")
        somebody.execute("SELECT FROM webhook_delivery_jobs WHERE id = %s FOR UPDATE", [job["id"]])
        somebody.execute(END_LEASE, [job["id"]])
        somebody.execute("SELECT FROM subscriptions WHERE id = %s FOR UPDATE", [locked])
        may_answer.set()
        wait_until(lambda: "results wait for a lock" in up.log.read_text(), "the result is kept")
        for kind in (quick, both):
            for _ in range(OTHERS):
                post(up.api, kind)
        completed = [{"status": "Completed", "count": 3 * OTHERS}, {"status": "InProgress", "count": 1}]
        wait_until(lambda: up.rows(SAGAS) == completed, "all others have arrived")
        assert up.rows(LEASED) == [job]

    wait_until(lambda: up.rows(LEASED) == [], "the result is written")
    wait_until(lambda: up.rows(SAGAS) == [{"status": "Completed", "count": 3 * OTHERS + 1}], "it ended")
    assert len(recorder.events(f"/ok/{slow}")) == 1
    assert len(recorder.events()) == 3 * OTHERS + 1
    assert findings(up.server.start()) == []


def test_a_canceling_that_waits_for_a_lock_holds_up_nobody(up: UpProcess, recorder: Recorder) -> None:
    up.start()
    failing, quick = new_name("failing"), new_name("quick")
    wanted = {
        "event_type": failing,
        "callback_url": f"{recorder.url}/ok/{failing}",
        "base_delay_seconds": 3600,
    }
    created = up.api.good("POST", "/v1/subscriptions", wanted)
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
    subscribe(up, recorder, f"/ok/{quick}", quick)
    recorder.script(f"/ok/{failing}", 503)
    post(up.api, failing)

    def waiting() -> list[dict[str, object]]:
        return up.rows("SELECT id FROM webhook_delivery_sagas WHERE status = 'PendingRetry'")

    ((saga_id,),) = (row.values() for row in wait_until(waiting, "it waits for its retry"))
    with psycopg.connect(up.server.start()) as somebody:
        somebody.execute("SELECT FROM webhook_delivery_sagas WHERE id = %s FOR UPDATE", [saga_id])
        canceling = threading.Thread(target=up.api.post, args=[f"/v1/sagas/{saga_id}/cancel"])
        canceling.start()
        blocked = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'saga_orchestrator'"
        wait_until(lambda: up.rows(blocked), "the canceling waits")
        post(up.api, quick)
        recorder.wait_for(f"/ok/{quick}", 1)
        assert up.rows(blocked)
    canceling.join(20)
    dead = [{"status": "Completed", "count": 1}, {"status": "DeadLettered", "count": 1}]
    wait_until(lambda: up.rows(SAGAS) == dead, "it is canceled")
