"""Names to addresses that a delivery may go to.

The one place where a name is looked up. What comes back has been vetted, and is what the connection is made
to: nothing looks the name up again.
"""

import asyncio
import math
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from hooksaga.core.address_policy import AddressPolicy

# A host name to its addresses as text, or socket.gaierror. It may block: it runs in a thread.
Lookup = Callable[[str], Sequence[str]]

# getaddrinfo cannot be interrupted, so a name whose servers are silent holds a thread until it gives up. The
# pool of the event loop has as few as five: a handful of such names would hold back all the others. A look-up may
# outlive its POST, so there may be more of them than POSTs in flight. Threads are only made as they are needed.
LOOKUP_THREADS = 512

# Addresses that were vetted are used again for this long; a burst to one name makes one look-up.
KEPT_SECONDS = 10

_NO_SUCH_NAME = frozenset(
    getattr(socket, name)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if hasattr(socket, name)  # the last two are missing on some systems
)


# None of the three is an OSError: those are about connections.
class AddressBlocked(Exception):
    """The policy permits none of the addresses that the name, or the literal host, stands for."""


class NameNotFound(Exception):
    """DNS says that the name does not exist, or has no address."""


class ResolveFailed(Exception):
    """DNS gave no answer this time: SERVFAIL, a timeout, no server within reach."""


class VettedResolver:
    """Looks a name up once, in a thread of its own pool, and drops the addresses that policy refuses.

    Whoever asks for a name that is being looked up waits for the same look-up. What was found is kept for
    KEPT_SECONDS; a failure is not. Names of the localhost family stand for 127.0.0.1 without a look-up
    (RFC 6761 §6.3). Belongs to one event loop.
    """

    def __init__(self, policy: AddressPolicy, lookup: Lookup | None = None) -> None:
        self._policy = policy
        self._lookup = lookup or system_lookup
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="dns")
        self._known: dict[str, _LookUp] = {}

    async def addresses(self, host: str) -> list[str]:
        """All permitted addresses of either family, never none.

        Raises AddressBlocked, NameNotFound or ResolveFailed.
        """
        known = self._known.get(host)
        if known is None or known.is_old():
            known = self._known[host] = _LookUp(asyncio.create_task(self._vetted(host)))
            known.task.add_done_callback(partial(self._keep, host, known))
        try:
            return await asyncio.shield(known.task)
        except asyncio.CancelledError:
            if not known.task.cancelled():
                raise
            raise ResolveFailed(host) from None  # by close(), and not who asks

    def _keep(self, host: str, look_up: "_LookUp", task: "asyncio.Task[list[str]]") -> None:
        if task.cancelled() or task.exception() is not None:
            self._forget(host, look_up)
        else:
            look_up.kept_until = task.get_loop().time() + KEPT_SECONDS
            task.get_loop().call_later(KEPT_SECONDS, self._forget, host, look_up)

    def _forget(self, host: str, look_up: "_LookUp") -> None:
        if self._known.get(host) is look_up:
            del self._known[host]

    async def _vetted(self, host: str) -> list[str]:
        addresses = await self._addresses(host)
        if not addresses:
            raise NameNotFound(host)
        vetted = [address for address in addresses if self._policy.permits(address)]
        if not vetted:
            raise AddressBlocked(host)
        return vetted

    async def close(self) -> None:
        """Look-ups that are under way end by themselves; nothing waits for them."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _addresses(self, host: str) -> Sequence[str]:
        if host == "localhost" or host.endswith(".localhost"):
            return ("127.0.0.1",)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._lookup, host)
        except socket.gaierror as fault:
            raise _translated(fault, host) from fault
        except UnicodeError as fault:  # a label that cannot be a name, such as one of 64 characters
            raise NameNotFound(host) from fault
        except OSError as fault:
            raise ResolveFailed(host) from fault


@dataclass(slots=True)
class _LookUp:
    task: asyncio.Task[list[str]]
    kept_until: float = math.inf

    def is_old(self) -> bool:
        """Timers of a process that was frozen come later than its next look-up."""
        return asyncio.get_running_loop().time() >= self.kept_until


def system_lookup(host: str) -> list[str]:
    """Resolve a name with the system's resolver: addresses in its order, each once; IPv6 only if this machine has it.

    The dot at the end makes the name absolute. Without it the search list of this machine would be tried, in
    Kubernetes even first, and a wildcard in it would turn a subscriber's name into one inside (decision 0031).
    """
    found = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(_with_zone(sockaddr) for _, _, _, _, sockaddr in found))


def _with_zone(sockaddr: tuple[object, ...]) -> str:
    address = str(sockaddr[0])
    has_zone = len(sockaddr) == 4 and sockaddr[3] != 0 and "%" not in address
    return f"{address}%{sockaddr[3]}" if has_zone else address


def _translated(fault: socket.gaierror, host: str) -> Exception:
    return NameNotFound(host) if fault.errno in _NO_SUCH_NAME else ResolveFailed(host)
