"""Workers that stop and wake up too late, die of one payload, or have a wrong clock."""

import asyncio
import os
import signal
import threading

import pytest
from aiohttp import web

from tests.api.running_system import new_name, wait_until
from tests.e2e.world import assert_signed, findings
from tests.faults.crash_points import CLOCK_VARIABLE
from tests.faults.machines import Machines
from tests.faults.poison import post_together
from tests.faults.promises import IN_FULL, Promise
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


JOBS = "SELECT status::text, claim_count, worker_id, response_status, error_code FROM webhook_delivery_jobs"


@pytest.mark.guarantee(
    Promise.FENCED, "a worker stopped by SIGSTOP past its lease, its answer in its socket, another at the job"
)
def test_a_worker_that_wakes_up_after_its_lease_changes_nothing(machines: Machines) -> None:
    """Its receiver answers 200 while the worker sleeps. Meanwhile another holds the job, and its answer counts."""
    sleeper, other = machines.make(), machines.make()
    statuses = iter((200, 418))
    may_answer = [threading.Event(), threading.Event()]

    async def answer(_body: bytes) -> web.Response:
        status = next(statuses)
        gate = may_answer[0 if status == 200 else 1]
        while not gate.is_set():
            await asyncio.sleep(0.01)
        return web.Response(status=status)

    recorder = machines.recorder
    sleeper.start()
    user = Stubborn(sleeper, recorder)
    subscription, path = user.subscribe(kind := new_name("sleep"), "/ok", max_retry_limit=1)
    recorder.script(path, answer)
    event = user.post(kind, new_name("key"))
    recorder.wait_for(path, 1)
    os.kill(sleeper.pid, signal.SIGSTOP)
    may_answer[0].set()  # the answer of 200 lies in the sleeper's socket now
    assert sleeper.end_leases_older_than(0) == 1
    other.start()
    recorder.wait_for(path, 2)
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: "lease_lost" in sleeper.log.read_text(), "the late result is dropped")
    assert [(job["status"], job["claim_count"]) for job in user.up.rows(JOBS)] == [("Leased", 2)]
    may_answer[1].set()
    assert user.saga_in("DeadLettered", event, subscription)["final_error_code"] == "http_418"
    (job,) = user.up.rows(JOBS)
    assert (job["claim_count"], job["response_status"]) == (2, 418)
    assert f":{other.pid}:" in job["worker_id"]
    assert findings(sleeper.server.start()) == []


@pytest.mark.long
def test_a_worker_that_only_stands_still_keeps_its_leases_beside_one_that_was_killed(
    machines: Machines,
) -> None:
    """Three processes of one host: the third gives back what the killed one held, and nothing of the stopped one's."""
    sleeper, killed, other = machines.make(), machines.make(), machines.make()
    sleeper.start()
    user = Stubborn(sleeper, machines.recorder)
    _, path = user.subscribe(kind := new_name("asleep"), "/hang")
    user.post(kind, new_name("key"))
    machines.recorder.wait_for(path, 1)
    os.kill(sleeper.pid, signal.SIGSTOP)
    (kept,) = sleeper.rows(JOBS)

    killed.start()
    second = Stubborn(killed, machines.recorder)
    _, path = second.subscribe(kind := new_name("killed"), "/hang")
    second.post(kind, new_name("key"))
    machines.recorder.wait_for(path, 1)
    dead = killed.pid
    killed.kill()
    machines.recorder.script(path, 200)
    other.start()
    arrived = machines.recorder.wait_for(path, 2)
    assert [one.header("hooksaga-attempt") for one in arrived] == ["1", "1"]
    jobs = wait_until(
        lambda: (now := other.rows(JOBS + " ORDER BY id"))[1]["status"] == "Completed" and now,
        "it is delivered",
    )
    assert jobs[0] == kept
    assert (kept["status"], int(kept["worker_id"].split(":")[1])) == ("Leased", sleeper.pid)
    assert int(jobs[1]["worker_id"].split(":")[1]) == other.pid != dead


@pytest.mark.guarantee(
    Promise.ALONE,
    "a payload that kills every process that sends it, in the middle of a batch",
    "a dead letter after three lost leases; twenty neighbours arrived",
)
def test_a_payload_that_kills_workers_dies_alone(machines: Machines) -> None:
    up = machines.make(HOOKSAGA_MAX_LOST_LEASES="3")
    # Only the dead lose leases: a neighbour has lost two already, and a slow machine must not take the third.
    user = Stubborn(up, machines.recorder, lease_seconds=30)
    up.start()
    subscription, path = user.subscribe(kind := new_name("poison"), "/ok", max_retry_limit=1)
    machines.faults.poison("kills every worker")
    poisoned, others = post_together(user, kind, "kills every worker")
    dead = user.saga_in("DeadLettered", poisoned, subscription)
    assert (dead["final_error_code"], dead["attempt_count"]) == ("lease_expired", 1)
    for event in others:
        user.saga_in("Completed", event, subscription)
    assert user.restarts == 3
    assert {one.header("webhook-id") for one in machines.recorder.events(path)} == set(others)
    assert findings(up.server.start()) == []


@pytest.mark.long
@pytest.mark.guarantee(
    Promise.ARRIVES, "the clock of the process ten minutes wrong", "arrived once, signed in time"
)
@pytest.mark.parametrize("seconds", [600, -600] if IN_FULL else [600])
def test_a_wrong_clock_delays_nothing_and_spoils_no_signature(machines: Machines, seconds: int) -> None:
    """Due times, leases and the time that is signed are the database's."""
    right, wrong = machines.make(), machines.make(**{CLOCK_VARIABLE: str(seconds)})
    user = Stubborn(right, machines.recorder)
    right.start()
    subscription, path = user.subscribe(kind := new_name("clock"), "/flaky/1")
    right.terminate()
    wrong.start()
    user.up = wrong
    events = [user.post(kind, new_name("key"), b"%d" % number) for number in range(10)]
    for event in events:
        user.saga_in("Completed", event, subscription)
    for arrived in machines.recorder.events(path):
        assert_signed(arrived, user.secrets[path])
    assert user.up.rows("SELECT id FROM webhook_delivery_jobs WHERE claim_count > 1") == []
    assert findings(wrong.server.start()) == []
