"""A thousand dead letters of three endpoints come back at a rate, whatever happens to the process meanwhile."""

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from hooksaga.local.tls import Certificates
from hooksaga.worker.upkeep import BULK_HORIZON_SECONDS
from tests.api.running_system import wait_until
from tests.database.bulk_rows import DEAD_LETTERS
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RATE = 100
SHARES = {"/ok/bulk-a": 600, "/ok/bulk-b": 300, "/ok/bulk-c": 100}
ALL = sum(SHARES.values())
TOLERANCE = 1.5
"""Of when sagas are really started, on a machine that does other things. When they are due is exact."""


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-bulk-"))
    process = UpProcess(folder, certificates, HOOKSAGA_LEASE_SECONDS="35", HOOKSAGA_LOG_LEVEL="INFO")
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


def subscribe_with_dead_letters(up: UpProcess, recorder: Recorder) -> None:
    for path, count in SHARES.items():
        wanted = {"event_type": path.replace("/", "."), "callback_url": recorder.url + path}
        created = up.api.good("POST", "/v1/subscriptions", wanted)
        up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
        dead = {
            "subscription_id": created["id"],
            "count": count,
            "error_code": "http_503",
            "first": datetime.now(UTC) - timedelta(hours=1),
        }
        with psycopg.connect(up.server.start(), autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(DEAD_LETTERS, dead)


def most_in_a_second(up: UpProcess, rows: LiteralString, *params: object) -> int:
    """`rows` is a query that gives moments as `at`."""
    query: LiteralString = (
        "SELECT max(count) AS n FROM (SELECT count(*) OVER (ORDER BY at RANGE BETWEEN CURRENT ROW"
        " AND '0.999999 s' FOLLOWING) FROM (" + rows + ") AS moments) AS windows"
    )
    return up.rows(query, params)[0]["n"]


@pytest.mark.long
def test_a_thousand_come_back_at_their_rate_though_the_process_is_killed(
    up: UpProcess, recorder: Recorder
) -> None:
    up.start()
    subscribe_with_dead_letters(up, recorder)
    wanted = {"kind": "requeue", "rate_per_second": RATE, "reason": "the receivers are back"}
    operation = up.api.good("POST", "/v1/bulk-operations", wanted)
    assert operation["matched"] == ALL

    def state() -> dict[str, Any]:
        return up.api.good("GET", f"/v1/bulk-operations/{operation['id']}")

    wait_until(lambda: state()["done"] >= ALL // 2, "half of it is started")
    up.kill()
    (killed,) = up.rows("SELECT now() AS at, done FROM bulk_operations")
    assert ALL // 2 <= killed["done"] < ALL
    up.end_leases_of_dead_workers()
    up.start()
    done = wait_until(lambda: (now := state())["finished_at"] and now, "the operation ends", 40)
    assert (done["status"], done["done"], done["skipped"]) == ("Completed", ALL, 0)
    wait_until(
        lambda: (
            not up.rows(
                "SELECT FROM webhook_delivery_sagas WHERE status::text NOT IN ('Completed', 'DeadLettered')"
            )
        ),
        "every saga has ended",
        40,
    )

    sagas = up.rows(
        "SELECT requeued_from, status::text FROM webhook_delivery_sagas WHERE bulk_operation_id > 0"
    )
    assert {saga["status"] for saga in sagas} == {"Completed"}
    assert len(sagas) == len({saga["requeued_from"] for saga in sagas}) == ALL
    for path, count in SHARES.items():
        assert len({one.header("webhook-id") for one in recorder.events(path)}) == count

    planned: LiteralString = (
        "SELECT next_attempt_at AS at FROM webhook_delivery_sagas WHERE bulk_operation_id > 0"
    )
    started: LiteralString = "SELECT created_at AS at FROM webhook_delivery_jobs"
    before: LiteralString = started + " WHERE created_at < %s"
    assert most_in_a_second(up, planned) <= RATE
    # What a busy machine starts a second late is started at once.
    assert most_in_a_second(up, before, killed["at"]) <= RATE * (TOLERANCE + 1)
    # What was due while nobody was there is started at once: no more than what had been planned ahead.
    assert most_in_a_second(up, started) <= RATE * (TOLERANCE + BULK_HORIZON_SECONDS)
    assert findings(up.server.start()) == []
