"""A transaction that somebody forgot holds the oldest rows of the database while tens of thousands of jobs pass.

Nothing that is updated or deleted meanwhile can be vacuumed, so every index of a queue grows dead entries. A claim must
not have to walk over them. What it takes is read from the server's own log.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hooksaga.adapters.queries import load_queries
from hooksaga.local.bench_figures import Percentiles, percentiles
from hooksaga.local.bench_processes import Arrivals, child, receive
from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import new_name, wait_until
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.database_server import DatabaseServer
from tests.faults.promises import IN_FULL, Promise, RecordProperty, tried

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not IN_FULL, reason="long: make faults"),
]

JOBS = 21_000
BATCH = 100
AHEAD = 1000
"""So many events are posted before their deliveries have ended, at the most."""

SHARE = 5
"""The begin and the end are the first and the last fifth of the statements."""

GROWTH_MS = 4
"""Half of the claims may take so much longer at the end than at the begin. The slowest tell of the machine's other work
as well, so they are noted only."""


@pytest.fixture
def up() -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-held-"))
    up = UpProcess(folder, ensure_certificates(folder), HOOKSAGA_LOG_LEVEL="WARNING")
    yield up
    up.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.guarantees(
    Promise.DATABASE, f"a REPEATABLE READ transaction elsewhere, open while {JOBS} jobs passed"
)
def test_a_transaction_held_open_slows_no_claim(up: UpProcess, record_property: RecordProperty) -> None:
    with child(receive, up.folder) as receiver:
        url = f"{receiver.recv()}/ok"
        up.start()
        server = DatabaseServer(up.folder / "postgres")
        for role in ("job_worker", "saga_orchestrator"):
            server.run(f"ALTER ROLE {role} SET log_min_duration_statement = 0")
        up.terminate()
        up.start()
        event_type = new_name("held")
        created = up.api.good("POST", "/v1/subscriptions", {"event_type": event_type, "callback_url": url})
        up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
        with psycopg.connect(server.url) as forgotten:
            forgotten.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            forgotten.execute("SELECT count(*) FROM events")
            _pass_jobs(up, event_type)
            assert _dead_jobs(up) >= JOBS
            log = server.log_since(0)
        receiver.send(None)
        arrivals: Arrivals = receiver.recv()
    assert len(arrivals.first) == JOBS
    assert findings(server.url) == []
    first, last = _begin_and_end(log, "deliver", "claim_waiting_jobs")
    assert (last.p50 or 0) < (first.p50 or 0) + GROWTH_MS
    look, last_look = _begin_and_end(log, "orchestrate", "start_due")
    outcome = (
        f"95 of 100 claims took at most {first.p95} ms at the begin and {last.p95} ms at the end; "
        f"starts {look.p95} ms and {last_look.p95} ms"
    )
    fault = f"a REPEATABLE READ transaction elsewhere, open while {JOBS} jobs passed"
    tried(record_property, Promise.DATABASE, fault, outcome)


def _pass_jobs(up: UpProcess, event_type: str) -> None:
    with psycopg.connect(up.server.start(), autocommit=True) as connection:

        def ended() -> int:
            query = "SELECT count(*) FROM webhook_delivery_sagas WHERE status = 'Completed'"
            return connection.execute(query).fetchall()[0][0]

        items = [{"event_type": event_type, "payload": {"number": number}} for number in range(BATCH)]
        for posted in range(0, JOBS, BATCH):
            up.api.good("POST", "/v1/events/batch", {"items": items})
            if posted % AHEAD == 0:
                wait_until(lambda: ended() >= posted - AHEAD, "deliveries keep up", 60)  # noqa: B023 - used at once
        wait_until(lambda: ended() == JOBS, "everything is delivered", 60)


def _dead_jobs(up: UpProcess) -> int:
    """Row versions that vacuum has to leave."""
    with psycopg.connect(up.server.start(), autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute("VACUUM (VERBOSE) webhook_delivery_jobs")
    found = re.search(r"(\d+) are dead but not yet removable", "\n".join(notices))
    return int(found[1]) if found else 0


def _begin_and_end(log: str, statements: str, name: str) -> tuple[Percentiles, Percentiles]:
    """Of the time that a statement took, of its first and its last executions."""
    first_line = load_queries(statements)[name].splitlines()[:2]
    text = r"\s+".join(re.escape(line.strip()) for line in first_line)
    text = re.sub(r"%\\?\(\w+\\?\)s", r"\\$\\d+", text)
    times = [float(one) for one in re.findall(rf"duration: ([\d.]+) ms  execute [^:]+: {text}", log)]
    count = len(times) // SHARE
    assert count >= 20, (name, len(times))
    return percentiles(times[:count]), percentiles(times[-count:])
