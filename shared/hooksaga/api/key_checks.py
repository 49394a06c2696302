"""API keys of requests: concurrent callers share one statement, and a valid key is remembered for a second."""

import time
from collections.abc import Awaitable, Callable, Sequence

from hooksaga.api.coalescing import Coalescer
from hooksaga.operations.api_keys import ApiKey

REMEMBERED_SECONDS = 1.0
"""How long a key that another process has revoked is still accepted."""

MAX_REMEMBERED = 1000

Check = Callable[[Sequence[bytes]], Awaitable[Sequence[ApiKey]]]
"""Returns the valid keys among the hashes."""


class KeyChecks:
    """Checks keys, within one event loop. Only valid keys are remembered: a new key can be used at once."""

    def __init__(self, check: Check, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = check
        self._clock = clock
        self._asking = Coalescer(self._ask)
        self._known: dict[bytes, tuple[ApiKey, float]] = {}

    async def check(self, key_hash: bytes) -> ApiKey | None:
        """Return the key with this hash; None if it is unknown or revoked."""
        known = self._known.get(key_hash)
        if known is not None and self._clock() < known[1]:
            return known[0]
        return await self._asking.submit(key_hash)

    def forget(self) -> None:
        """Ask again for every key, because one was revoked or the clock may have stood still."""
        self._known = {}

    async def _ask(self, hashes: Sequence[bytes]) -> list[ApiKey | None]:
        known, until = self._known, self._clock() + REMEMBERED_SECONDS
        found = {key.hash: key for key in await self._read(list(set(hashes)))}
        if len(known) > MAX_REMEMBERED:
            known.clear()
        known |= {one: (key, until) for one, key in found.items()}  # forgotten meanwhile: nobody reads it
        return [found.get(one) for one in hashes]
