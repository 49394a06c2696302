"""Keeps the embedded PostgreSQL running while a process needs it: one that died is started again.

Nobody else watches it: its server belongs to a folder, and outlives every process that used it.
"""

import asyncio
import time
from collections import deque

from hooksaga.local.postgres import EmbeddedPostgres, EmbeddedPostgresError
from hooksaga.runtime.telemetry import logger

LOOK_SECONDS = 0.5
MAX_RESTARTS = 3
WITHIN_SECONDS = 60.0
"""A server that dies more often than MAX_RESTARTS in this time has a fault that no restart repairs."""


class DatabaseWatch:
    """Of one server, which has been started."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._restarts: deque[float] = deque()

    async def run(self) -> None:
        """Look until cancelled.

        Raises EmbeddedPostgresError or NoDatabaseAccount when the server cannot be started again, or dies again and
        again.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not await asyncio.to_thread(self._server.is_running):
                try:
                    await self._restart()
                except Exception as fault:
                    logger.error("embedded database not restarted", extra={"error": str(fault)})
                    raise

    async def _restart(self) -> None:
        began = time.monotonic()
        while self._restarts and self._restarts[0] < began - WITHIN_SECONDS:
            self._restarts.popleft()
        if len(self._restarts) >= MAX_RESTARTS:
            raise EmbeddedPostgresError(
                f"PostgreSQL died {MAX_RESTARTS + 1} times within {WITHIN_SECONDS:.0f} s and is not started again.\n"
                + self._server.end_of_log()
            )
        self._restarts.append(began)
        logger.error("embedded database died")
        await asyncio.to_thread(self._server.restart)
        logger.warning("embedded database restarted", extra={"seconds": round(time.monotonic() - began, 1)})
