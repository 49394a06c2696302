"""Events by which one loop wakes another."""

import asyncio
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Wakes:
    """One event per loop, set by the loop that created work for it."""

    route: asyncio.Event = field(default_factory=asyncio.Event)
    start: asyncio.Event = field(default_factory=asyncio.Event)
    apply: asyncio.Event = field(default_factory=asyncio.Event)
    quick: asyncio.Event = field(default_factory=asyncio.Event)
    slow: asyncio.Event = field(default_factory=asyncio.Event)
    watch: asyncio.Event = field(default_factory=asyncio.Event)
