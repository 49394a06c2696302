"""The process dies at every named point of every stage, once, and everything still ends as it must.

First the whole story is told once undisturbed, and the points that it passes are noted. Then it is told again for
each point, with the process killed there by SIGKILL; whoever was speaking with it repeats his call.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.tls import ensure_certificates
from tests.api.running_system import new_name
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.crash_points import FaultFolder
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

EVERY_POINT = os.environ.get("HOOKSAGA_FAULTS") == "all"
SHORT_FORM = (
    "after write accept_events.insert_events",
    "before commit accept_events.insert_events",
    "after write route_events.route_outbox",
    "before commit orchestrate.start_attempts",
    "after write deliver.claim_jobs",
    "before POST of a delivery",
    "after POST of a delivery",
    "after write deliver.record_results",
    "before commit orchestrate.apply_results",
    "after commit orchestrate.apply_results",
    "after write requeue.requeue_dead_letters",
    "after commit subscriptions.add_secret",
)
"""What `make test` tries; `make faults` tries every point that the story passes."""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-crash-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


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


def tell_story(user: Stubborn) -> dict[str, int]:
    """Everything that a system is asked to do, once; how often each delivery arrived."""
    kind = new_name("story")
    fine, fine_path = user.subscribe(kind, "/ok")
    flaky, flaky_path = user.subscribe(kind, "/flaky/1")
    down, down_path = user.subscribe(kind, "/status/500", max_retry_limit=1)
    slow, _ = user.subscribe(kind, "/status/503", base_delay_seconds=3600)
    event = user.post(kind, new_name("key"), b'{"n": 1.10}')
    user.saga_in("Completed", event, fine)
    user.saga_in("Completed", event, flaky)
    requeue(user, user.saga_in("DeadLettered", event, down))
    user.until(lambda: len(user.sagas(event, down)) == 2, "the requeued saga is there")
    user.saga_in("DeadLettered", event, down)
    waiting = user.saga_in("PendingRetry", event, slow)
    user.call("POST", f"/v1/sagas/{waiting['id']}/cancel")
    assert user.saga_in("DeadLettered", event, slow)["final_error_code"] == "canceled"
    change_subscription(user, fine)
    return {path: arrivals(user, path, event) for path in (fine_path, flaky_path, down_path)}


def requeue(user: Stubborn, saga: dict[str, Any]) -> None:
    user.call("POST", f"/v1/dead-letters/{saga['dead_letter_id']}/requeue")


def change_subscription(user: Stubborn, subscription_id: int) -> None:
    target = f"/v1/subscriptions/{subscription_id}"
    user.call("POST", f"{target}/rotate-secret")
    user.call("PATCH", target, {"description": "changed"})
    user.call("DELETE", target)


def arrivals(user: Stubborn, path: str, event_id: str) -> int:
    return sum(one.header("webhook-id") == event_id for one in user.recorder.events(path))


def test_a_kill_at_any_point_loses_nothing(user: Stubborn, faults: FaultFolder) -> None:
    faults.record()
    user.up.start()
    undisturbed = tell_story(user)
    assert sorted(undisturbed.values()) == [1, 2, 2]
    points = faults.seen()
    assert set(SHORT_FORM) <= set(points), sorted(set(SHORT_FORM) - set(points))
    for point in points if EVERY_POINT else SHORT_FORM:
        faults.arm(point)
        arrived = tell_story(user)
        # A point at the start of a process is passed when the process is started again.
        if not faults.has_struck:
            user.up.kill()
            user.revive()
        assert faults.has_struck, point
        twice = {
            path: (was, now) for (path, was), now in zip(undisturbed.items(), arrived.values(), strict=True)
        }
        assert all(was <= now <= was + 1 for was, now in twice.values()), (point, twice)
    user.until(lambda: not open_work(user), "all work has ended")
    assert findings(user.up.server.start()) == []


def open_work(user: Stubborn) -> int:
    return user.up.rows(
        "SELECT (SELECT count(*) FROM routing_outbox) + (SELECT count(*) FROM webhook_delivery_sagas "
        "WHERE status NOT IN ('Completed', 'DeadLettered')) AS n"
    )[0]["n"]
