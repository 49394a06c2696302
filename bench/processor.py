"""Processor time and memory of processes that are looked at from outside."""

from pathlib import Path

import psutil

from hooksaga.local import postmaster


def cpu_of_server(folder: Path) -> float:
    """Seconds of the PostgreSQL of a data folder; 0 when there is none."""
    server = postmaster.running_on(folder / "postgres")
    return cpu_of_tree(server.pid if server else None)


def cpu_of_tree(pid: int | None) -> float:
    """Seconds of a process and its children, those that ended included; 0 when there is none."""
    if pid is None:
        return 0.0
    try:
        root = psutil.Process(pid)
        used = root.cpu_times()
        ended = used.children_user + used.children_system
        return (
            used.user + used.system + ended + sum(own_cpu(child) for child in root.children(recursive=True))
        )
    except psutil.NoSuchProcess:
        return 0.0


def own_cpu(process: psutil.Process) -> float:
    """Seconds of one process without its children; 0 when it has ended."""
    try:
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return used.user + used.system


def resident_of_tree(pid: int) -> int:
    """Bytes in memory of a process and its children. Pages that they share count for each."""
    root = psutil.Process(pid)
    return sum(_resident(one) for one in (root, *root.children(recursive=True)))


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0
