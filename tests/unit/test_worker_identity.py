"""A worker is gone only where its process has certainly ended: killed, not stopped, and not another host's."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooksaga.worker import worker_identity
from hooksaga.worker.worker_identity import is_gone, new_worker_id, this_place
from tests.api.running_system import wait_until

NAMING = (
    "from hooksaga.worker.worker_identity import new_worker_id\n"
    "import time\n"
    "print(new_worker_id(), flush=True)\n"
    "time.sleep(600)"
)
HOST, PID, BEGUN, PLACE, RANDOM = range(5)

pytestmark = pytest.mark.skipif(this_place() is None, reason="this system does not tell")

Worker = tuple[subprocess.Popen[str], str]


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A process that named itself, and its name."""
    process = subprocess.Popen([sys.executable, "-c", NAMING], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def changed(worker_id: str, part: int, value: str) -> str:
    parts = worker_id.split(":")
    parts[part] = value
    return ":".join(parts)


def test_a_process_that_runs_is_not_gone(worker: Worker) -> None:
    _, worker_id = worker
    assert not is_gone(worker_id)
    assert not is_gone(new_worker_id())


def test_a_process_that_was_killed_is_gone_before_anybody_waits_for_it_and_after(worker: Worker) -> None:
    process, worker_id = worker
    process.kill()
    wait_until(lambda: is_gone(worker_id), "the zombie counts as gone", 10)
    assert Path(f"/proc/{process.pid}").exists()
    process.wait()
    assert not Path(f"/proc/{process.pid}").exists()
    assert is_gone(worker_id)


def test_a_process_that_only_stands_still_is_not_gone(worker: Worker) -> None:
    process, worker_id = worker
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(
        lambda: ") T " in Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8"), "it stands still"
    )
    assert not is_gone(worker_id)


def test_a_process_id_that_another_process_has_now_is_no_life_sign(worker: Worker) -> None:
    _, worker_id = worker
    begun = int(worker_id.split(":")[BEGUN])
    assert is_gone(changed(worker_id, BEGUN, str(begun - 1)))


def test_a_killed_process_of_another_place_is_not_known_to_be_gone(worker: Worker) -> None:
    process, worker_id = worker
    process.kill()
    process.wait()
    assert not is_gone(changed(worker_id, PLACE, "0" * 16))


@pytest.mark.parametrize(
    "worker_id",
    [
        "",
        "w1",
        "host:4000000:aabbccdd",
        "2026/01/31/[$LATEST]abc:aabbccdd",
        "host:x:1:{place}:aabbccdd",
        "host:1::{place}:aabbccdd",
        "host:-1:1:{place}:aabbccdd",
        "host:4000000:1:{place}",
    ],
)
def test_a_name_that_tells_too_little_is_not_gone(worker_id: str) -> None:
    assert not is_gone(worker_id.format(place=this_place()))


def test_a_main_thread_that_has_ended_alone_is_not_the_end_of_its_process(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel shows such a process as a zombie, with its other threads."""
    process, worker_id = worker
    process.kill()
    wait_until(lambda: is_gone(worker_id), "it is gone", 10)
    monkeypatch.setattr(worker_identity, "_has_other_threads", lambda _pid: True)
    assert not is_gone(worker_id)


def proc_of(tmp_path: Path, *missing: str, namespaces: str = "{pid}") -> Path:
    """A /proc that tells of this process in so many namespaces."""
    pid = str(os.getpid())
    files = {
        "self/status": f"Name:\tx\nNSpid:\t{namespaces.format(pid=pid)}\n",
        "sys/kernel/random/boot_id": "a-boot\n",
        "self/ns/pid": "",
        "self/ns/time": "",
    }
    for name, content in files.items():
        if name not in missing:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, encoding="ascii")
    return tmp_path


@pytest.mark.parametrize(
    ("missing", "namespaces", "known"),
    [
        ((), "{pid}", True),
        (("self/ns/time",), "{pid}", True),
        (("self/status",), "{pid}", False),
        (("sys/kernel/random/boot_id",), "{pid}", False),
        (("self/ns/pid",), "{pid}", False),
        ((), "{pid}\t1", False),
        ((), "{pid}\t{pid}", False),
        ((), "", False),
    ],
)
def test_a_place_is_known_only_where_proc_tells_of_this_very_namespace(
    tmp_path: Path, missing: tuple[str, ...], namespaces: str, known: bool
) -> None:
    assert (this_place(proc_of(tmp_path, *missing, namespaces=namespaces)) is not None) is known


def test_a_place_is_another_after_a_boot(tmp_path: Path) -> None:
    proc = proc_of(tmp_path)
    before = this_place(proc)
    (proc / "sys/kernel/random/boot_id").write_text("another-boot\n", encoding="ascii")
    assert before is not None
    assert this_place(proc) not in (None, before)


def in_a_namespace(*options: str) -> Callable[[str], subprocess.CompletedProcess[str]]:
    def run(program: str) -> subprocess.CompletedProcess[str]:
        command = ["unshare", *options, sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


NAMESPACE = ("--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


def can_have_namespaces() -> bool:
    has_command = shutil.which("unshare") is not None
    return has_command and subprocess.run(["unshare", *NAMESPACE, "true"], check=False).returncode == 0


@pytest.mark.skipif(not can_have_namespaces(), reason="no process id namespaces for this user")
def test_a_process_of_another_container_is_never_taken_for_gone(worker: Worker) -> None:
    """One kernel and one host name, the same process ids, another namespace: in neither direction."""
    _, worker_id = worker
    name = "from hooksaga.worker.worker_identity import new_worker_id; print(new_worker_id())"
    inside = in_a_namespace(*NAMESPACE)(name).stdout.strip()
    assert len(inside.split(":")) == 5
    assert inside.split(":")[PLACE] != worker_id.split(":")[PLACE]
    assert not is_gone(inside)  # although it has ended
    asked = f"from hooksaga.worker.worker_identity import is_gone; print(is_gone({worker_id!r}))"
    assert in_a_namespace(*NAMESPACE)(asked).stdout.strip() == "False"


@pytest.mark.skipif(not can_have_namespaces(), reason="no process id namespaces for this user")
def test_a_process_that_sees_the_process_ids_of_others_has_no_place() -> None:
    """A new namespace with the old /proc."""
    options = [option for option in NAMESPACE if option != "--mount-proc"]
    name = "from hooksaga.worker.worker_identity import new_worker_id; print(new_worker_id())"
    assert len(in_a_namespace(*options)(name).stdout.strip().split(":")) == 3
