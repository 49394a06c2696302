"""Which process a worker is, and the proof that it is gone, from its worker id alone.

A worker id names the process so that no other process, of this host or of any other, is taken for it: the process id,
when the process began, and the place where process ids mean what they mean here (decision 67). A process of that place
can ask the kernel whether it still runs. Everybody else knows nothing, and waits for the end of its leases.
"""

import hashlib
import os
import secrets
import socket
from pathlib import Path

_PLACE_DIGITS = 16
_ZOMBIE, _DEAD = "Z", "X"


def new_worker_id() -> str:
    """A name that no other worker has: host:pid:begun:place:random, without begun and place where they are unknown."""
    pid = os.getpid()
    place, facts = this_place(), _facts_of(pid)
    known = [] if place is None or facts is None else [facts[1], place]
    return ":".join([socket.gethostname()[:40].replace(":", "-"), str(pid), *known, secrets.token_hex(4)])


def is_gone(worker_id: str) -> bool:
    """Whether the worker's process has certainly ended. False where that is not known."""
    parts = worker_id.split(":")
    if len(parts) != 5 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False
    _, pid, begun, place, _ = parts
    return place == this_place() and _has_ended(int(pid), begun)


def this_place(proc: Path = Path("/proc")) -> str | None:
    """Equal for two processes only if they share the running kernel, the process ids and the clock that dates them.

    None where /proc does not tell, or tells of other process ids than this process's own.
    """
    try:
        if _process_ids_of_self(proc) != [str(os.getpid())]:
            return None
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        pids = (proc / "self/ns/pid").stat()
    except (OSError, ValueError):
        return None
    try:
        times = (proc / "self/ns/time").stat().st_ino
    except OSError:
        times = 0  # a kernel before 5.6: there is one for all
    if not boot:
        return None
    told = f"{boot}/{pids.st_dev}:{pids.st_ino}/{times}/{socket.gethostname()}"
    return hashlib.sha256(told.encode()).hexdigest()[:_PLACE_DIGITS]


def _process_ids_of_self(proc: Path) -> list[str]:
    """One for each namespace from that of /proc to the innermost: more than one where /proc is not this process's."""
    lines = (proc / "self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])


def _has_ended(pid: int, begun: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # it is there, and somebody else's; or no process id at all
    facts = _facts_of(pid)
    if facts is None:
        return False  # hidden from us, or it ended this moment: the next look tells
    state, began = facts
    return began != begun or (state in (_ZOMBIE, _DEAD) and not _has_other_threads(pid))


def _facts_of(pid: int) -> tuple[str, str] | None:
    """The state of a process, and the ticks since the start of the system when it began."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()  # behind the name, which may hold anything
    return fields[0].decode(), fields[19].decode()


def _has_other_threads(pid: int) -> bool:
    """Whether more than the main thread is left: a process whose main thread alone has ended may still send."""
    try:
        return any(thread.name != str(pid) for thread in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True
