"""The whole process group is killed at random moments under load, and the database with it now and then.

What was accepted has to arrive at least once or be a dead letter; nothing may be accepted twice or forgotten.
"""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess, pause_until
from tests.e2e.world import findings
from tests.faults.load import DEAD_END, KINDS, Producer, check_arrivals, has_settled, subscribe, together
from tests.faults.promises import IN_FULL, Promise

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILLS = 10 if IN_FULL else 3
WITH_THE_DATABASE = (3, 7)
WHILE_IT_STARTS = (2, 6)
POSTERS = 4
EVENT_TYPE = "sigkill"


@pytest.fixture
def up(folder: Path, recorder: Recorder) -> Iterator[UpProcess]:
    process = UpProcess(
        folder,
        ensure_certificates(folder),
        HOOKSAGA_MAX_RETRY_LIMIT="3",
        HOOKSAGA_LEASE_SECONDS="35",
        HOOKSAGA_LOG_LEVEL="WARNING",
    )
    yield process
    process.close()


def kill_again_and_again(up: UpProcess, producers: list[Producer], chance: random.Random) -> None:
    for number in range(KILLS):
        if number in WHILE_IT_STARTS:
            pause_until(time.monotonic() + chance.uniform(0.05, 1.2))
        else:
            up.wait_until_ready()
            before = sum(len(producer.told.accepted) for producer in producers)
            wait_until(
                lambda: sum(len(one.told.accepted) for one in producers) > before + 3,  # noqa: B023 - used at once
                "the system takes events again",
                30,
            )
            pause_until(time.monotonic() + chance.uniform(0, 0.4))
        up.kill()
        if number in WITH_THE_DATABASE:
            up.kill_database()
        up.spawn()


@pytest.mark.guarantee(
    Promise.ARRIVES, "ten kills at random moments under load, two of them with the database"
)
def test_kills_under_load_lose_and_double_nothing(up: UpProcess, recorder: Recorder) -> None:
    up.start()
    paths = subscribe(up, recorder, EVENT_TYPE)
    stopping = threading.Event()
    producers = [Producer(up, number, stopping, event_type=EVENT_TYPE) for number in range(POSTERS)]
    for producer in producers:
        producer.start()
    try:
        kill_again_and_again(up, producers, random.Random(20_261_127))
        up.wait_until_ready()
    finally:
        stopping.set()
        for producer in producers:
            producer.join(70)
    told = together(producers)
    assert told.faults == []
    accepted = told.accepted
    assert len(accepted) > 4 * KILLS

    wait_until(lambda: has_settled(up), "every saga has ended", 40)

    check_events(up, accepted)
    check_sagas(up, len(accepted))
    check_letters(up, len(accepted))
    check_arrivals(recorder, paths, accepted)
    assert findings(up.server.start()) == []


def check_events(up: UpProcess, accepted: dict[str, tuple[str, bytes]]) -> None:
    """One event for each key, with the id that the producer was told."""
    rows = up.rows("SELECT external_id, 'evt_' || replace(webhook_id::text, '-', '') AS id FROM events")
    assert len(rows) == len({row["external_id"] for row in rows})
    assert {row["external_id"]: row["id"] for row in rows} == {key: one for key, (one, _) in accepted.items()}


def check_sagas(up: UpProcess, events: int) -> None:
    rows = up.rows(
        "SELECT s.callback_url, g.status::text, count(*) AS n, count(DISTINCT g.event_id) AS events "
        "FROM webhook_delivery_sagas g JOIN subscriptions s ON s.id = g.subscription_id GROUP BY 1, 2"
    )
    assert len(rows) == len(KINDS), rows
    for row in rows:
        dead_end = f"{DEAD_END}/" in row["callback_url"]
        assert row["status"] == ("DeadLettered" if dead_end else "Completed"), row
        assert row["n"] == row["events"] == events


def check_letters(up: UpProcess, events: int) -> None:
    letters = up.rows("SELECT count(*) AS n, count(DISTINCT event_id) AS events FROM dead_letters")[0]
    assert letters["n"] == letters["events"] == events
