"""`GET /metrics` on one machine: the process's counters, and gauges read from the views per request.

It needs no key: the port is bound to this machine, and the page holds numbers of the whole system only, none of a
tenant, subscription or event. On AWS there is no such route; CloudWatch has the metrics.
"""

import asyncio
import time
from dataclasses import replace

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.errors import HooksagaError
from hooksaga.operations.observe import Gauges, read_gauges
from hooksaga.runtime.telemetry import logger
from hooksaga.worker.open_metrics import OpenMetrics

READ_SECONDS = 2.0
"""Timeout for reading the gauges; the page then has none."""
MIN_FRESH_SECONDS = 2.0
MAX_BUSY_SHARE = 0.05
"""Maximum share of the database's time for reading the gauges, however often the page is requested."""


class MetricsPage:
    """The metrics page. Belongs to one event loop. `counted`: the counters of the process."""

    def __init__(self, address: DatabaseAddress) -> None:
        self.counted = OpenMetrics()
        self._session = Session(replace(address, unit_timeout_seconds=READ_SECONDS), Role.OBSERVER)
        self._reading = asyncio.Lock()
        self._gauges: Gauges | None = None
        self._fresh_until = 0.0

    async def close(self) -> None:
        await self._session.close()

    async def text(self) -> bytes:
        """Return the page."""
        return self.counted.text(await self._fresh_gauges())

    async def _fresh_gauges(self) -> Gauges | None:
        async with self._reading:  # concurrent requests get the same response
            if time.monotonic() >= self._fresh_until:
                started = time.monotonic()
                self._gauges = await self._read()
                ended = time.monotonic()
                self._fresh_until = ended + max(MIN_FRESH_SECONDS, (ended - started) / MAX_BUSY_SHARE)
            return self._gauges

    async def _read(self) -> Gauges | None:
        try:
            return await self._session.run(read_gauges)
        except HooksagaError as error:
            logger.warning("gauges not read", extra={"error": str(error)})
            return None
