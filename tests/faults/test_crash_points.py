"""The process dies at every named point of every stage, once, and everything still ends as it must.

First the whole story is told once undisturbed, and the points that it passes are noted. Then it is told again for
each point, with the process killed there by SIGKILL; whoever was speaking with it repeats his call.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.crash_points import FaultFolder
from tests.faults.promises import IN_FULL, Promise, RecordProperty, arrivals, tried
from tests.faults.story import open_work, tell_story
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SHORT_FORM = (
    "before write accept_events.insert_events",
    "after write orchestrate.start_due",
    "after POST of a delivery",
    "after write deliver.record_results",
    "after write orchestrate.apply_results",
)
"""What `make test` tries; `make faults` tries every point that the story passes."""


@pytest.fixture
def faults(folder: Path) -> FaultFolder:
    return FaultFolder(folder / "faults")


@pytest.fixture
def user(folder: Path, faults: FaultFolder) -> Iterator[Stubborn]:
    certificates = ensure_certificates(folder)
    recorder = Recorder(certificates)
    up = UpProcess(
        folder,
        certificates,
        HOOKSAGA_MAX_RETRY_LIMIT="3",
        HOOKSAGA_LEASE_SECONDS="35",
        HOOKSAGA_LOG_LEVEL="WARNING",
        **faults.environment,
    )
    yield Stubborn(up, recorder)
    up.close()
    recorder.close()


@pytest.mark.guarantees(Promise.ARRIVES, "killed before *", "killed after *")
def test_a_kill_at_any_point_loses_nothing(
    user: Stubborn, faults: FaultFolder, record_property: RecordProperty
) -> None:
    faults.record()
    user.up.start()
    undisturbed = tell_story(user)
    assert undisturbed == [1, 2, 2, 1]
    points = faults.seen()
    assert set(SHORT_FORM) <= set(points), sorted(set(SHORT_FORM) - set(points))
    for point in points if IN_FULL else SHORT_FORM:
        faults.arm(point)
        arrived = tell_story(user)
        # A point at the start of a process is passed when the process is started again.
        if not faults.has_struck:
            user.up.kill()
            user.revive()
        wait_until(lambda: faults.has_struck, f"a process has died {point}")
        extra = [now - was for was, now in zip(undisturbed, arrived, strict=True)]
        assert all(0 <= more <= 1 for more in extra), (point, arrived)
        tried(record_property, Promise.ARRIVES, f"killed {point}", arrivals(arrived, undisturbed))
    user.until(lambda: not open_work(user), "all work has ended")
    assert findings(user.up.server.start()) == []
