"""The code of one version beside the schema of the next: migrations that add run while everything works."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.doctor.surroundings import UP_CONNECTIONS
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations.doctor import CONNECTIONS_PER_ROLE
from tests.api.running_system import wait_until
from tests.database.later import first_schema, plant
from tests.database.migration_rules import GOOD, named
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.load import KINDS, Producer, check_arrivals, has_settled, subscribe, together
from tests.faults.promises import Promise

pytestmark = [pytest.mark.faults, pytest.mark.e2e, pytest.mark.slow]

EVENT_TYPE = "upgraded"
FURTHER = 20
"""Events that are accepted before, and after, the migrations."""


@pytest.fixture
def up(folder: Path) -> Iterator[UpProcess]:
    process = UpProcess(
        folder, ensure_certificates(folder), HOOKSAGA_MAX_RETRY_LIMIT="3", HOOKSAGA_LOG_LEVEL="ERROR"
    )
    yield process
    process.close()


def migrate_one_by_one(up: UpProcess, producers: list[Producer], folder: Path) -> list[str]:
    """Run each planted migration once events are accepted beside the one before. Returns their names."""
    address = DatabaseAddress(up.server.start())
    first_schema(folder)
    done: list[str] = []
    for name, text in named(GOOD, 9001).items():
        before = accepted(producers)
        wait_until(lambda: accepted(producers) > before + 2, "events are accepted", 30)  # noqa: B023 - used at once
        done += migrate(address, plant(folder, **{name: text}))
    return done


def check_connections(up: UpProcess) -> None:
    """A process opens no more than the doctor asks a server for."""
    rows = up.rows(
        "SELECT usename::text AS role, count(*) AS n FROM pg_stat_activity"
        " WHERE starts_with(application_name, 'hooksaga ') GROUP BY 1"
    )
    assert max(row["n"] for row in rows) <= CONNECTIONS_PER_ROLE, rows
    assert 10 < sum(row["n"] for row in rows) <= UP_CONNECTIONS


def accepted(producers: list[Producer]) -> int:
    return sum(len(one.told.accepted) for one in producers)


@pytest.mark.long
@pytest.mark.guarantee(
    Promise.DATABASE,
    "migrations of a later version run beside this one under load: no call fails, nothing is lost",
)
def test_migrations_that_add_run_beside_the_code_before_them(
    up: UpProcess, recorder: Recorder, tmp_path: Path
) -> None:
    up.start()
    paths = subscribe(up, recorder, EVENT_TYPE)
    stopping = threading.Event()
    producers = [
        Producer(up, number, stopping, event_type=EVENT_TYPE, rest_seconds=0.02) for number in range(3)
    ]
    for producer in producers:
        producer.start()
    try:
        wait_until(lambda: accepted(producers) > FURTHER, "events are accepted before", 60)
        done = migrate_one_by_one(up, producers, tmp_path)
        before = accepted(producers)
        wait_until(lambda: accepted(producers) > before + FURTHER, "events are accepted after", 60)
    finally:
        stopping.set()
        for producer in producers:
            producer.join(60)
    told = together(producers)
    check_connections(up)
    assert done == list(named(GOOD, 9001))
    assert (told.faults, told.turned_away, told.hang_ups) == ([], 0, 0)
    wait_until(lambda: has_settled(up), "every delivery has ended", 90)
    assert set(paths) == set(KINDS)
    check_arrivals(recorder, paths, told.accepted)
    assert findings(up.server.start()) == []
    assert "{" not in up.log.read_text(), "an error was logged"
    assert up.terminate() == 0
