"""A dump that is made while everything runs holds leases of workers and waits of sagas. Restored a day later, as the
page says, it has a clean audit before anything works on it, and everything arrives once something does."""

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hooksaga.local.tls import Certificates, ensure_certificates
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.load import Producer, Told, together
from tests.local.restored import command, dump_of, new_server, restore, run

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EVENT_TYPE = "dumped"
KINDS = ("/ok", "/slow/1500", "/flaky/1")
"""What succeeds, what is always under way, and what waits for its second attempt."""

IN_FLIGHT = """
    SELECT count(*) FILTER (WHERE j.status = 'Leased') > 0
           AND count(*) FILTER (WHERE s.status = 'PendingRetry') > 0 AS both
      FROM webhook_delivery_sagas s LEFT JOIN webhook_delivery_jobs j ON j.saga_id = s.id"""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-dumped-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def certificates(folder: Path) -> Certificates:
    return ensure_certificates(folder)


@pytest.fixture
def recorder(certificates: Certificates) -> Iterator[Recorder]:
    recorder = Recorder(certificates)
    yield recorder
    recorder.close()


@pytest.fixture
def up(folder: Path, certificates: Certificates) -> Iterator[UpProcess]:
    process = UpProcess(folder, certificates, HOOKSAGA_BASE_DELAY_SECONDS="20", HOOKSAGA_LOG_LEVEL="WARNING")
    yield process
    process.close()


def subscribe(up: UpProcess, recorder: Recorder) -> None:
    for kind in KINDS:
        path = f"{kind}/{EVENT_TYPE}"
        wanted = {"event_type": EVENT_TYPE, "callback_url": recorder.url + path}
        created = up.api.good("POST", "/v1/subscriptions", wanted)
        recorder.receiver.add_secret(path, created["secret"])
        up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")


def dump_under_load(up: UpProcess, recorder: Recorder, folder: Path) -> tuple[Path, Told]:
    """With the subscriptions activated anew meanwhile, and what the producers were told before the dump began."""
    up.start()
    subscribe(up, recorder)
    stopping = threading.Event()
    producers = [
        Producer(up, number, stopping, event_type=EVENT_TYPE, rest_seconds=0.02) for number in range(3)
    ]
    for producer in producers:
        producer.start()
    try:
        wait_until(lambda: up.rows(IN_FLIGHT)[0]["both"], "attempts are under way and retries wait", 60)
        up.api.good("PATCH", "/v1/subscriptions/1", {"active": False})
        up.api.good("PATCH", "/v1/subscriptions/1", {"active": True})
        told = together(producers)
        return dump_of(up.server.start(), folder), told
    finally:
        stopping.set()
        for producer in producers:
            producer.join(60)


def pass_a_day(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE webhook_delivery_jobs SET lease_until = lease_until - interval '1 day'")
        connection.execute(
            "UPDATE webhook_delivery_sagas SET next_attempt_at = next_attempt_at - interval '1 day'"
        )


def audited(url: str) -> tuple[bool, list[str]]:
    """Whether nothing is at work, and which invariants are broken."""
    found: dict[str, Any] = json.loads(run(url, "audit", "--json").stdout)
    return found["at_rest"], [one["invariant"] for one in found["invariants"] if not one["ok"]]


def test_a_dump_made_under_load_has_a_clean_audit_and_goes_on(
    up: UpProcess, recorder: Recorder, folder: Path, certificates: Certificates
) -> None:
    dump, told = dump_under_load(up, recorder, folder)
    assert up.terminate() == 0
    assert told.faults == []
    with new_server() as urls:
        target = urls["postgres"]
        restore(dump, target)
        pass_a_day(target)
        said = command(target, "audit")
        assert "No process works on this database" in said
        with psycopg.connect(target) as connection:
            left = connection.execute("SELECT count(*) FROM webhook_delivery_jobs WHERE status = 'Leased'")
            assert left.fetchone() != (0,)
        # As if work had begun on it and nobody did any.
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("UPDATE work_state SET at_work_since = now() - interval '1 hour'")
        is_clean, found = audited(target)
        assert not is_clean
        assert {"lease_over_too_long"} <= set(found) <= {"saga_waits_too_long", "lease_over_too_long"}
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("UPDATE work_state SET at_work_since = NULL")
        delivers_all(UpProcess(folder, certificates, HOOKSAGA_DATABASE_URL=target), recorder, target, told)


def delivers_all(up: UpProcess, recorder: Recorder, target: str, told: Told) -> None:
    """Whether all events from before the dump are delivered, without a finding of the audit."""
    open_sagas = (
        "SELECT count(*) FROM webhook_delivery_sagas WHERE status NOT IN ('Completed', 'DeadLettered')"
    )
    up.start()
    try:
        assert audited(target) == (False, [])
        with psycopg.connect(target, autocommit=True) as connection:
            wait_until(lambda: connection.execute(open_sagas).fetchone() == (0,), "every saga has ended", 60)
        assert audited(target) == (False, [])
    finally:
        assert up.terminate() == 0
    assert audited(target) == (True, [])
    ids = {event_id for event_id, _ in told.accepted.values()}
    for kind in KINDS[1:]:
        arrived = {one.header("webhook-id") for one in recorder.events(f"{kind}/{EVENT_TYPE}")}
        assert ids <= arrived
