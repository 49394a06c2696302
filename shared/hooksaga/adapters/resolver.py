"""Resolves host names to addresses that the policy permits.

This is the only DNS lookup: the connection is opened to the checked addresses, without a second lookup.
"""

import asyncio
import math
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from hooksaga.core.address_policy import AddressPolicy

# Resolves a host name to addresses as text, or raises socket.gaierror. May block: it runs in a thread.
Lookup = Callable[[str], Sequence[str]]

# getaddrinfo cannot be interrupted, so a name whose DNS servers do not answer occupies a thread. The event loop's
# default pool has as few as five threads, so a few such names would block all lookups. A lookup can outlast its POST,
# so there can be more of them than active POSTs. Threads are created on demand.
LOOKUP_THREADS = 512

# Permitted addresses are cached for this long, so a burst to one name needs one lookup.
KEPT_SECONDS = 10

_NO_SUCH_NAME = frozenset(
    getattr(socket, name)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if hasattr(socket, name)  # the last two do not exist on some systems
)


# None of these is an OSError; those are connection errors.
class AddressBlocked(Exception):
    """The policy permits none of the addresses of the name or literal host."""


class NameNotFound(Exception):
    """DNS reports that the name does not exist or has no address."""


class ResolveFailed(Exception):
    """DNS gave no answer: SERVFAIL, a timeout, or no reachable server."""


class VettedResolver:
    """Resolves names in threads of its own pool, and removes addresses that the policy does not permit.

    Concurrent callers share one lookup per name. Results are cached for KEPT_SECONDS, failures are not. localhost
    names resolve to 127.0.0.1 without a lookup (RFC 6761 §6.3). Bound to one event loop.
    """

    def __init__(self, policy: AddressPolicy, lookup: Lookup | None = None) -> None:
        self._policy = policy
        self._lookup = lookup or system_lookup
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="dns")
        self._known: dict[str, _LookUp] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return all permitted addresses, at least one. Raises AddressBlocked, NameNotFound or ResolveFailed."""
        known = self._known.get(host)
        if known is None or known.is_old():
            known = self._known[host] = _LookUp(asyncio.create_task(self._vetted(host)))
            known.task.add_done_callback(partial(self._keep, host, known))
        try:
            return await asyncio.shield(known.task)
        except asyncio.CancelledError:
            if not known.task.cancelled():
                raise
            raise ResolveFailed(host) from None  # cancelled by close(), not by the caller

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
        """Stop. Active lookups end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _addresses(self, host: str) -> Sequence[str]:
        if host == "localhost" or host.endswith(".localhost"):
            return ("127.0.0.1",)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._lookup, host)
        except socket.gaierror as fault:
            raise (NameNotFound if fault.errno in _NO_SUCH_NAME else ResolveFailed)(host) from fault
        except UnicodeError as fault:  # an invalid label, such as one of 64 characters
            raise NameNotFound(host) from fault
        except OSError as fault:
            raise ResolveFailed(host) from fault


@dataclass(slots=True)
class _LookUp:
    task: asyncio.Task[list[str]]
    kept_until: float = math.inf

    def is_old(self) -> bool:
        """Checked on use, because timers of a suspended process fire late."""
        return asyncio.get_running_loop().time() >= self.kept_until


def system_lookup(host: str) -> list[str]:
    """Resolve a name with the system's resolver: unique addresses in its order; IPv6 only if this machine has it.

    The final dot makes the name absolute. Otherwise the resolver would try its search list, in Kubernetes even first,
    and a wildcard in it could map a subscriber's name to an internal host (decision 0031).
    """
    found = socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(_with_zone(sockaddr) for _, _, _, _, sockaddr in found))


def _with_zone(sockaddr: tuple[object, ...]) -> str:
    address = str(sockaddr[0])
    has_zone = len(sockaddr) == 4 and sockaddr[3] != 0 and "%" not in address
    return f"{address}%{sockaddr[3]}" if has_zone else address
