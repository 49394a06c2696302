"""`hooksaga up` with ages deletes what is old, and nothing else has to be scheduled."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess

OLDER = (
    "UPDATE events SET created_at = created_at - interval '40 days'",
    "UPDATE webhook_delivery_sagas SET updated_at = updated_at - interval '40 days'",
    "UPDATE webhook_delivery_jobs SET finished_at = finished_at - interval '40 days'",
)


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-retention-"))
    process = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=EmbeddedPostgres(folder).start(),  # it would start its own again
        HOOKSAGA_EVENT_DAYS="30",
    )
    process.start()
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_old_events_and_deliveries_go_by_themselves(up: UpProcess, recorder: Recorder) -> None:
    wanted = {"event_type": "kept.for.days", "callback_url": f"{recorder.url}/ok/kept"}
    subscription = up.api.good("POST", "/v1/subscriptions", wanted)
    up.api.good("POST", f"/v1/subscriptions/{subscription['id']}/verify")
    old, new = [post(up.api, "kept.for.days") for _ in range(2)]

    def status(event_id: str) -> list[str]:
        return [one["status"] for one in up.api.good("GET", f"/v1/events/{event_id}")["sagas"]]

    wait_until(lambda: status(old) == status(new) == ["Completed"], "both are delivered")
    up.terminate()
    url = EmbeddedPostgres(up.folder).start()
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        first = "(SELECT min(id) FROM events)"
        connection.execute(f"{OLDER[0]} WHERE id = {first}".encode())
        connection.execute(f"{OLDER[1]} WHERE event_id = {first}".encode())
        connection.execute(
            f"{OLDER[2]} WHERE saga_id = (SELECT id FROM webhook_delivery_sagas WHERE event_id = {first})".encode()
        )
    up.start()
    wait_until(lambda: up.api.get(f"/v1/events/{old}").status == 404, "the old event is gone")
    assert status(new) == ["Completed"]

    def behind() -> float:
        return float(up.api.good("GET", "/v1/stats")["retention_behind_seconds"])

    wait_until(lambda: behind() < 60, "retention has walked through all kinds")
    assert '"old rows deleted"' in up.log.read_text()
