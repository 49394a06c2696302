"""A dump that is made while everything runs holds leases of workers and waits of sagas. Restored a day later, as the
page says, it has a clean audit before anything works on it, and everything arrives once something does."""

from pathlib import Path

import psycopg
import pytest

from hooksaga.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.load import Told, together
from tests.local.restored import command, dump_of, new_server, restore
from tests.local.under_load import EVENT_TYPE, KINDS, audited, load_on, subscribe

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def dump_under_load(up: UpProcess, recorder: Recorder, folder: Path) -> tuple[Path, Told]:
    """With the subscriptions activated anew meanwhile, and what the producers were told before the dump began."""
    up.start()
    subscribe(up, recorder)
    with load_on(up) as producers:
        up.api.good("PATCH", "/v1/subscriptions/1", {"active": False})
        up.api.good("PATCH", "/v1/subscriptions/1", {"active": True})
        told = together(producers)
        return dump_of(up.server.start(), folder), told


def pass_a_day(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE webhook_delivery_jobs SET lease_until = lease_until - interval '1 day',"
            " attempt_at = attempt_at - interval '1 day'"
        )
        connection.execute(
            "UPDATE webhook_delivery_sagas SET next_attempt_at = next_attempt_at - interval '1 day'"
        )


@pytest.mark.long
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
