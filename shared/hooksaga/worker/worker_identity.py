"""Worker ids: which process a worker is, and whether it has certainly ended, from the id alone.

A worker id identifies one process among those of all hosts: by the process id, the time the process began, and the
place, which is the namespace where the process id is valid (decision 67). A process of the same place can ask the
kernel whether the worker still runs. All other processes cannot know, and wait for its leases to expire.
"""

import base64
import hashlib
import os
import secrets
import socket
from pathlib import Path

_PLACE_BYTES = 6
_ZOMBIE, _DEAD = "Z", "X"


def new_worker_id() -> str:
    """Return a unique worker id: host:pid:begun:place:random, without begun and place where they are unknown.

    It is short, because each attempt stores it.
    """
    pid = os.getpid()
    place, facts = this_place(), _facts_of(pid)
    known = [] if place is None or facts is None else [facts[1], place]
    return ":".join([socket.gethostname()[:40].replace(":", "-"), str(pid), *known, secrets.token_urlsafe(3)])


def is_gone(worker_id: str) -> bool:
    """Return whether the worker's process has certainly ended. False when that is not known."""
    parts = worker_id.split(":")
    if len(parts) != 5 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False
    _, pid, begun, place, _ = parts
    return place == this_place() and _has_ended(int(pid), begun)


def this_place(proc: Path = Path("/proc")) -> str | None:
    """Return this process's place: equal for two processes only if they share the kernel, process ids and boot clock.

    None when /proc is not available, or shows another namespace's process ids.
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
        times = 0  # kernels before 5.6 have one for all processes
    if not boot:
        return None
    told = f"{boot}/{pids.st_dev}:{pids.st_ino}/{times}/{socket.gethostname()}"
    return base64.urlsafe_b64encode(hashlib.sha256(told.encode()).digest()[:_PLACE_BYTES]).decode()


def _process_ids_of_self(proc: Path) -> list[str]:
    """Return this process's ids, one per namespace from that of /proc to the innermost.

    More than one means that /proc belongs to another namespace.
    """
    lines = (proc / "self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])


def _has_ended(pid: int, begun: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # it runs under another user; or this is not a process id
    facts = _facts_of(pid)
    if facts is None:
        return False  # hidden from this process, or it has just ended: the next poll tells
    state, began = facts
    return began != begun or (state in (_ZOMBIE, _DEAD) and not _has_other_threads(pid))


def _facts_of(pid: int) -> tuple[str, str] | None:
    """Return the state of a process, and its start time in clock ticks since the boot of the system."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()  # after the name, which may contain any character
    return fields[0].decode(), fields[19].decode()


def _has_other_threads(pid: int) -> bool:
    """Return whether other threads than the main one remain: a process whose main thread ended may still send."""
    try:
        return any(thread.name != str(pid) for thread in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True
