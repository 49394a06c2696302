"""A worker whose event loop stands still past its lease, as a long calculation or a blocking call would make it.

Unlike a process stopped by SIGSTOP it looks alive: its sockets are open, the kernel takes connections for it, and its
other threads run. Nothing that it does afterwards may count, and nothing that others do may wait for it.
"""

import asyncio
import threading
from pathlib import Path

import pytest
from aiohttp import web

from tests.api.running_system import new_name, wait_until
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.machines import Machines
from tests.faults.promises import Promise
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    # The receiver's own event loop warns of handshakes that a process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HELD = 5
MEANWHILE = 10

JOBS = """
    SELECT j.status::text, j.claim_count, j.worker_id, j.response_status FROM webhook_delivery_jobs j
      JOIN subscriptions s ON s.id = j.subscription_id WHERE %s = ANY (s.event_types) ORDER BY j.id"""


class Receiver:
    """Answers 200 to the first requests and 418 to those that follow, each time when it may."""

    def __init__(self) -> None:
        self._arrived = 0
        self.may_answer_first = threading.Event()
        self.may_answer_second = threading.Event()

    async def answer(self, _body: bytes) -> web.Response:
        is_first = self._arrived < HELD
        self._arrived += 1
        gate = self.may_answer_first if is_first else self.may_answer_second
        while not gate.is_set():
            await asyncio.sleep(0.01)
        return web.Response(status=200 if is_first else 418)


def late_results(log: Path) -> int:
    return log.read_text().count("lease_lost")


@pytest.mark.long
@pytest.mark.guarantee(
    Promise.FENCED,
    "an event loop that stands still past its lease, five answers in its sockets, another worker at the jobs",
    "dropped; ten others arrived meanwhile",
)
def test_what_a_blocked_event_loop_was_told_comes_too_late(machines: Machines) -> None:
    blocked, other = machines.make(), machines.make()
    receiver, recorder = Receiver(), machines.recorder
    blocked.start()
    user = Stubborn(blocked, recorder)
    subscription, path = user.subscribe(kind := new_name("block"), "/ok", max_retry_limit=1)
    quick, quick_path = user.subscribe(quick_kind := new_name("quick"), "/ok")
    recorder.script(path, receiver.answer)
    events = [user.post(kind, new_name("key"), b"%d" % number) for number in range(HELD)]
    recorder.wait_for(path, HELD)

    machines.faults.arm_stall("after POST of a delivery")
    receiver.may_answer_first.set()
    wait_until(lambda: machines.faults.is_stalled, "the event loop stands still")
    assert blocked.end_leases_older_than(0) == HELD
    other.start()
    recorder.wait_for(path, 2 * HELD)
    meanwhile = post_past(other, user, quick_kind)
    wait_until(lambda: arrived(user, quick_path) == meanwhile, "the rest arrives meanwhile")

    machines.faults.end_stall()
    wait_until(lambda: late_results(blocked.log) == HELD, "the late results are dropped")
    assert [(job["status"], job["claim_count"]) for job in user.up.rows(JOBS, [kind])] == [
        ("Leased", 2)
    ] * HELD
    receiver.may_answer_second.set()
    for event in events:
        assert user.saga_in("DeadLettered", event, subscription)["final_error_code"] == "http_418"
    jobs = user.up.rows(JOBS, [kind])
    assert [(job["claim_count"], job["response_status"]) for job in jobs] == [(2, 418)] * HELD
    assert all(f":{other.pid}:" in job["worker_id"] for job in jobs)
    user.saga_in("Completed", user.post(quick_kind, new_name("key")), quick)
    assert blocked.is_alive
    assert findings(blocked.server.start()) == []


def post_past(other: UpProcess, user: Stubborn, kind: str) -> set[str]:
    """Events given to the other process, while the first one answers nobody."""
    blocked, user.up = user.up, other
    try:
        return {user.post(kind, new_name("key"), b"%d" % number) for number in range(MEANWHILE)}
    finally:
        user.up = blocked


def arrived(user: Stubborn, path: str) -> set[str]:
    return {one.header("webhook-id") for one in user.recorder.events(path)}


@pytest.mark.long
@pytest.mark.guarantee(
    Promise.FENCED,
    "an event loop that stands still between its claim and its POST, past its lease",
    "one POST, the other worker's",
)
def test_a_blocked_event_loop_begins_no_post_after_its_lease(machines: Machines) -> None:
    """The lease is as long as a lease may be short, and really over: what counts here is the worker's own clock."""
    timeouts = {"HOOKSAGA_HTTP_TIMEOUT_SECONDS": "30", "HOOKSAGA_LEASE_SECONDS": "35"}
    blocked, other = machines.make(**timeouts), machines.make(**timeouts)
    blocked.start()
    user = Stubborn(blocked, machines.recorder)
    subscription, path = user.subscribe(kind := new_name("block"), "/ok")
    machines.faults.arm_stall("after write deliver.claim_jobs")
    event = user.post(kind, new_name("key"))
    wait_until(lambda: machines.faults.is_stalled, "the event loop stands still")
    held_past_margin = "SELECT 1 FROM webhook_delivery_jobs WHERE leased_at < now() - interval '5.5 seconds'"
    wait_until(lambda: user.up.rows(held_past_margin), "a POST of 30 s could outlive the lease", 20)
    assert blocked.end_leases_older_than(0) == 1
    other.start()
    machines.recorder.wait_for(path, 1)
    machines.faults.end_stall()
    user.saga_in("Completed", event, subscription)
    user.saga_in("Completed", user.post(kind, new_name("key")), subscription)
    assert len(user.recorder.events(path)) == 2
    (first, _) = user.up.rows(JOBS, [kind])
    assert first["claim_count"] == 2
    assert f":{other.pid}:" in first["worker_id"]
    assert findings(blocked.server.start()) == []
