"""Processor time of processes that are looked at from outside."""

import psutil


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
