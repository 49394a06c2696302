"""The whole process group is killed at random moments while an ordered subscription is served, and its order holds."""

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
from tests.faults.load import Producer, check_arrivals, has_settled, subscribe, together
from tests.faults.promises import IN_FULL, Promise

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILLS = 6 if IN_FULL else 2
KEYS = 4
EVENT_TYPE = "order"
KINDS = ("/ok", "/flaky/1")


@pytest.fixture
def up(folder: Path, recorder: Recorder) -> Iterator[UpProcess]:
    process = UpProcess(
        folder, ensure_certificates(folder), HOOKSAGA_LEASE_SECONDS="35", HOOKSAGA_LOG_LEVEL="WARNING"
    )
    yield process
    process.close()


@pytest.mark.guarantee(
    Promise.ORDERED, "kills at random moments, with receivers that succeed and that fail once"
)
def test_kills_break_no_order(up: UpProcess, recorder: Recorder) -> None:
    up.start()
    paths = subscribe(up, recorder, EVENT_TYPE, KINDS, ordered=True)
    stopping, chance = threading.Event(), random.Random(20_261_129)
    producers = [
        Producer(up, number, stopping, event_type=EVENT_TYPE, rest_seconds=0.3) for number in range(KEYS)
    ]
    for producer in producers:
        producer.start()
    try:
        for _ in range(KILLS):
            up.wait_until_ready()
            pause_until(time.monotonic() + chance.uniform(1, 2))
            up.kill()
            up.spawn()
        up.wait_until_ready()
        pause_until(time.monotonic() + 1)
    finally:
        stopping.set()
        for producer in producers:
            producer.join(70)
    told = together(producers)
    assert told.faults == []
    wait_until(lambda: has_settled(up), "every saga has ended", 60)
    check_arrivals(recorder, paths, told.accepted)
    for producer in producers:
        posted = [event_id for event_id, _ in producer.told.accepted.values()]
        assert len(posted) > KILLS
        for path in paths.values():
            arrived = [one.header("webhook-id") for one in recorder.events(path)]
            assert [one for one in dict.fromkeys(arrived) if one in set(posted)] == posted
    assert findings(up.server.start()) == []
