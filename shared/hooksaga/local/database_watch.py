"""Restarts the embedded PostgreSQL while a process needs it. No other process watches it: the server belongs to a
folder and outlives the processes that use it."""

import asyncio
import time
from collections import deque

from hooksaga.local.postgres import EmbeddedPostgres, EmbeddedPostgresError
from hooksaga.runtime.telemetry import logger

LOOK_SECONDS = 0.5
MAX_RESTARTS = 3
WITHIN_SECONDS = 60.0
"""A server that dies more than MAX_RESTARTS times in this period is not restarted."""


class DatabaseWatch:
    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._restarts: deque[float] = deque()

    async def run(self) -> None:
        """Watch until cancelled.

        Raises EmbeddedPostgresError or NoDatabaseAccount if the server cannot be restarted, or dies repeatedly.
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
