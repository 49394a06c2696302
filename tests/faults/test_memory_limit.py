"""A payload that takes more memory than there is: each process that sends it fails or dies of a real limit.

It lies in the middle of a batch, so its neighbours are claimed with it and lose their worker with it, each time.
"""

import resource
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.api.running_system import new_name, wait_until
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.crash_points import CGROUP_VARIABLE
from tests.faults.machines import Machines
from tests.faults.poison import post_together
from tests.faults.promises import Promise
from tests.faults.stubborn import Stubborn

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.long,  # the tests of workers that misbehave lose their workers to a payload every day
    # The receiver's own event loop warns of handshakes that the killed process left half done.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MIB = 2**20
PROCESS_MAY_HAVE = 320 * MIB
MORE_MAY_BE_MAPPED = 256 * MIB
"""Threads and buffers of the others find room beside what a payload takes and gives back."""
POISON = "takes all memory"


def check_that_one_died_alone(
    user: Stubborn, subscription: int, poisoned: str, others: list[str], path: str
) -> None:
    dead = user.saga_in("DeadLettered", poisoned, subscription)
    assert (dead["final_error_code"], dead["attempt_count"]) == ("lease_expired", 1)
    for event in others:
        user.saga_in("Completed", event, subscription)
    assert {one.header("webhook-id") for one in user.recorder.events(path)} == set(others)
    assert findings(user.up.server.start()) == []


def limit_memory_of(up: UpProcess) -> None:
    mapped = psutil.Process(up.pid).memory_info().vms
    limit = mapped + MORE_MAY_BE_MAPPED
    resource.prlimit(up.pid, resource.RLIMIT_AS, (limit, limit))


@pytest.mark.guarantee(
    Promise.ALONE,
    "a payload that takes all memory that RLIMIT_AS allows, in the middle of a batch",
    "a dead letter after three lost leases; the process lived, twenty neighbours arrived",
)
def test_a_payload_for_which_there_is_no_memory_dies_alone(machines: Machines) -> None:
    up = machines.make(HOOKSAGA_MAX_LOST_LEASES="3")
    user = Stubborn(up, machines.recorder)
    up.start()
    subscription, path = user.subscribe(kind := new_name("memory"), "/ok", max_retry_limit=1)
    limit_memory_of(up)
    machines.faults.hoard(POISON)
    poisoned, others = post_together(user, kind, POISON)
    check_that_one_died_alone(user, subscription, poisoned, others, path)
    assert "MemoryError" in up.log.read_text()
    assert user.restarts == 0


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A control group whose processes together may have so much memory."""
    root = Path("/sys/fs/cgroup")
    group = root / ("memory" if (root / "memory").is_dir() else "") / f"hooksaga-{uuid.uuid4().hex}"
    limit = "memory.limit_in_bytes" if (root / "memory").is_dir() else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(PROCESS_MAY_HAVE))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group with a memory limit can be made here: {error}")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), "its processes have ended")
    group.rmdir()


@pytest.mark.guarantee(
    Promise.ALONE,
    "a payload for which the kernel kills every process that sends it (memory limit of a control group), "
    "in the middle of a batch",
    "a dead letter after five lost leases; twenty neighbours arrived",
)
def test_a_payload_that_the_kernel_kills_for_dies_alone(cgroup: Path, machines: Machines) -> None:
    up = machines.make(**{CGROUP_VARIABLE: str(cgroup)})
    user = Stubborn(up, machines.recorder)
    up.server.start()  # by us, so that the database is not in the control group
    up.start()
    subscription, path = user.subscribe(kind := new_name("memory"), "/ok", max_retry_limit=1)
    machines.faults.hoard(POISON)
    poisoned, others = post_together(user, kind, POISON)
    check_that_one_died_alone(user, subscription, poisoned, others, path)
    assert user.restarts == 5
