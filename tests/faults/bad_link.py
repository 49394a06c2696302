"""A network link between two network namespaces that loses, doubles, delays and reorders packets, or is cut.

The kernel's own emulation is not there on every machine; two TUN devices and a thread between them are. Linux, as root.
"""

import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

SENDER, RECEIVER = "10.9.0.1", "10.9.0.2"
MTU = 1500

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000


@dataclass
class Weather:
    """Faults of packets. Shares from 0 to 1, seconds; independent delays reorder packets."""

    lost: float = 0
    doubled: float = 0
    delay: tuple[float, float] = (0, 0)
    is_cut: bool = False


def enter_network(pid: int) -> None:
    """Move the calling thread into the network namespace of a process."""
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class BadLink:
    """From the namespace of the caller to that of another process. `carried` counts the packets that came through."""

    def __init__(self, other: int, *, chance: random.Random) -> None:
        self.weather = Weather()
        self.carried = 0
        self.lost = 0
        self._chance = chance
        self._near = _open_tun()
        _configure([], SENDER, RECEIVER)
        self._far = self._open_far(other)
        self._stopping = False
        self._thread = threading.Thread(target=self._carry, name="link")
        self._thread.start()

    def _open_far(self, other: int) -> int:
        opened: list[int] = []

        def open_there() -> None:
            enter_network(other)
            opened.append(_open_tun())

        thread = threading.Thread(target=open_there)
        thread.start()
        thread.join()
        _configure(["nsenter", "-t", str(other), "-n"], RECEIVER, SENDER)
        return opened[0]

    def close(self) -> None:
        self._stopping = True
        self._thread.join()
        os.close(self._near)
        os.close(self._far)

    def _carry(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []
        numbers = itertools.count()
        to = {self._near: self._far, self._far: self._near}
        while not self._stopping:
            wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.05
            for source in select.select(list(to), [], [], min(wait, 0.05))[0]:
                packet = os.read(source, MTU + 100)
                for due in self._befall():
                    heapq.heappush(under_way, (due, next(numbers), to[source], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(under_way)
                os.write(target, packet)
                self.carried += 1

    def _befall(self) -> list[float]:
        """When the packet arrives: never, once or twice."""
        weather, chance = self.weather, self._chance
        if weather.is_cut or chance.random() < weather.lost:
            self.lost += 1
            return []
        copies = 2 if chance.random() < weather.doubled else 1
        return [time.monotonic() + chance.uniform(*weather.delay) for _ in range(copies)]


def _open_tun() -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"link0", _IFF_TUN | _IFF_NO_PI))
    return device


def _configure(inside: list[str], address: str, peer: str) -> None:
    for command in (
        ["ip", "address", "add", address, "peer", peer, "dev", "link0"],
        ["ip", "link", "set", "link0", "up", "mtu", str(MTU)],
        ["ip", "link", "set", "lo", "up"],
    ):
        subprocess.run([*inside, *command], check=True, timeout=10)
