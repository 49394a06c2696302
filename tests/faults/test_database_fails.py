"""The database fails under load, in every way that databases do. The process is never restarted.

In each case: nobody is told of anything but 202 and 503, what was accepted is there and ends, and the audit is clean.
"""

import asyncio
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import ensure_certificates
from hooksaga.stages.clean_leases import clean_leases
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.crash_points import FaultFolder
from tests.faults.database_faults import FAULTS, IN_FULL, Fault, Site
from tests.faults.database_server import DatabaseServer, NoMount
from tests.faults.load import DEAD_END, KINDS, Producer, Told, check_arrivals, subscribe, together
from tests.faults.promises import Promise, RecordProperty, tried
from tests.faults.wire import Wire

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # The receiver's own event loop warns of handshakes that a process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PRODUCERS = 4
REST_SECONDS = 0.1
HEALED_WITHIN_SECONDS = 10
SETTLED_WITHIN_SECONDS = 150
"""One of the endpoints answers 503 to each first attempt. That halves its limit down to one delivery at a time, and the
backlog of the fault has to pass."""

LEASE_SECONDS = 2
"""Leases end after this long here, as seen by one more lease cleaner; no receiver takes a tenth of it."""


class Loaded:
    """A process, its receiver, and the site of its database."""

    def __init__(self, up: UpProcess, recorder: Recorder, site: Site) -> None:
        self.up = up
        self.recorder = recorder
        self.site = site

    def rows(self, query: LiteralString, *params: Any) -> list[dict[str, Any]]:
        """A superuser's, past the wire."""
        with psycopg.connect(self.site.server.url, autocommit=True) as connection:
            return connection.cursor(row_factory=dict_row).execute(query, params).fetchall()

    def has_settled(self) -> bool:
        self._end_old_leases()
        return not self.rows(
            "SELECT 1 WHERE EXISTS (SELECT FROM routing_outbox) OR EXISTS (SELECT FROM webhook_delivery_sagas "
            "WHERE status NOT IN ('Completed', 'DeadLettered'))"
        )

    def _end_old_leases(self) -> None:
        """A claim whose answer was lost belongs to nobody until its lease ends."""
        with psycopg.connect(self.site.server.url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            ended = connection.execute(
                "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 second' "
                "WHERE status = 'Leased' AND leased_at < now() - make_interval(secs => %s)",
                [LEASE_SECONDS],
            ).rowcount
        if ended:
            asyncio.run(self._clean_leases())

    async def _clean_leases(self) -> None:
        session = Session(DatabaseAddress(self.site.server.url), Role.LEASE_CLEANER)
        await session.run(lambda connection: clean_leases(connection, max_lost_leases=5))
        await session.close()


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-fails-"))
    EmbeddedPostgres(folder).start()
    server = DatabaseServer(folder / "postgres")
    wire = Wire(folder / "wire", server.socket)
    certificates = ensure_certificates(folder)
    recorder = Recorder(certificates)
    up = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=wire.url,
        HOOKSAGA_MAX_RETRY_LIMIT="3",
        HOOKSAGA_LEASE_SECONDS="35",
        HOOKSAGA_LOG_LEVEL="WARNING",
        **FaultFolder(folder / "faults").environment,
    )
    site = Site(folder, server, wire)
    up.start()
    yield Loaded(up, recorder, site)
    up.kill()
    wire.close()
    for folder_of_server in [folder / "postgres", *folder.glob("standby-*")]:
        EmbeddedPostgres(folder).stop() if folder_of_server.name == "postgres" else _stop(folder_of_server)
    recorder.close()
    shutil.rmtree(folder, ignore_errors=True)


def _stop(folder: Path) -> None:
    if (folder / "postmaster.pid").exists():
        DatabaseServer(folder).stop("immediate")


@pytest.mark.guarantees(Promise.DATABASE, *(f"under load: {fault.name}" for fault in FAULTS.values()))
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.is_quick or IN_FULL])
def test_a_database_that_fails_under_load_loses_nothing(
    loaded: Loaded, name: str, record_property: RecordProperty
) -> None:
    fault = FAULTS[name]
    event_type, pid = new_name("load"), loaded.up.pid
    paths = subscribe(loaded.up, loaded.recorder, event_type)
    struck, over_at, told = _under_load(loaded, event_type, fault)
    assert loaded.up.is_alive
    assert loaded.up.pid == pid
    assert told.faults == []
    assert told.hang_ups == 0
    healed = next(at for at in told.accepted_at if at > over_at) - over_at
    assert healed < HEALED_WITHIN_SECONDS
    wait_until(loaded.has_settled, "every saga has ended", SETTLED_WITHIN_SECONDS)
    _check_rows(loaded, event_type, told.accepted)
    check_arrivals(loaded.recorder, paths, told.accepted)
    assert findings(loaded.site.server.url) == []
    events = len(told.accepted)
    outcome = (
        f"{events} events accepted, {told.turned_away} answers of 503, events taken again after {healed:.1f} s; "
        f"all {events * len(KINDS)} deliveries ended"
    )
    tried(record_property, Promise.DATABASE, f"under load: {fault.name}", outcome, times=struck)


def _under_load(loaded: Loaded, event_type: str, fault: Fault) -> tuple[int, float, Told]:
    """How often the fault struck, when it was over, and what the producers were told."""
    stopping = threading.Event()
    producers = [
        Producer(loaded.up, number, stopping, event_type=event_type, rest_seconds=REST_SECONDS)
        for number in range(PRODUCERS)
    ]
    for producer in producers:
        producer.start()
    try:
        wait_until(lambda: len(together(producers).accepted) > 2 * PRODUCERS, "the load is there")
        server = loaded.site.server
        position = server.log_size()
        struck = fault.strike(loaded.site)
        over_at = time.monotonic()
        if fault.evidence:
            struck = len(re.findall(fault.evidence, server.log_since(position)))
        assert struck > 0, "the fault has not struck"
        wait_until(
            lambda: sum(at > over_at for at in together(producers).accepted_at) > 2 * PRODUCERS,
            "it takes events again",
            HEALED_WITHIN_SECONDS,
        )
    except NoMount:
        pytest.skip("a small disk can be mounted by root only")
    finally:
        stopping.set()
        for producer in producers:
            producer.join(70)
    return struck, over_at, together(producers)


def _check_rows(loaded: Loaded, event_type: str, accepted: dict[str, tuple[str, bytes]]) -> None:
    """One event for each key, with the id that was told; one end for each delivery of it."""
    rows = loaded.rows(
        "SELECT external_id AS key, 'evt_' || replace(webhook_id::text, '-', '') AS id FROM events "
        "WHERE event_type = %s",
        event_type,
    )
    assert len(rows) == len(accepted)
    assert {row["key"]: row["id"] for row in rows} == {key: one for key, (one, _) in accepted.items()}
    ended = loaded.rows(
        "SELECT s.callback_url LIKE %s AS is_dead_end, g.status::text, count(*) AS n, "
        "count(DISTINCT g.event_id) AS events FROM webhook_delivery_sagas g "
        "JOIN subscriptions s ON s.id = g.subscription_id WHERE %s = ANY (s.event_types) "
        "GROUP BY s.callback_url, g.status",
        f"%{DEAD_END}/%",
        event_type,
    )
    assert len(ended) == len(KINDS), ended
    for row in ended:
        assert row["status"] == ("DeadLettered" if row["is_dead_end"] else "Completed"), row
        assert row["n"] == row["events"] == len(accepted), row
