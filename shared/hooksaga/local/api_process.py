"""The API as a process of its own, beside the stages: started, watched, and started again when it ends.

`hooksaga up` keeps the listening socket, so clients that connect while the API is started again wait for it. The API
tells the stages what it has accepted, and writes its log through this process (decision 108).
"""

import asyncio
import os
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.core.errors import HooksagaError
from hooksaga.local.channel import COUNTS, EVENTS, PAGE, READY, SAGAS, SERVE, STOP, Channel
from hooksaga.local.forwarded_counts import take_counts
from hooksaga.local.process_environment import environment_of
from hooksaga.local.wakes import Stages
from hooksaga.runtime.log_lines import write_text
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import logger
from hooksaga.worker.metrics_page import MetricsPage

PROGRAM = "hooksaga.local.api_start"
STOP_SECONDS = 25.0
"""A process that is told to stop is killed after this time. Its requests in flight may take 20 seconds."""
MAX_RESTARTS = 3
WITHIN_SECONDS = 60.0
"""An API that ends more than MAX_RESTARTS times in this period is not started again."""
READ_BYTES = 65_536


class ApiEnded(HooksagaError):
    """The process of the API ends again and again."""


def processes_of(settings: Settings) -> int:
    """Return how many processes `hooksaga up` is: two where there are two cores, unless the settings say otherwise."""
    if sys.platform == "win32":
        return 1
    if settings.processes is not None:
        return settings.processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(2, cores)


class ApiProcess:
    """The process, and what it tells the stages. `run` keeps it running until `stop` or `abandon`."""

    def __init__(
        self,
        settings: Settings,
        address: DatabaseAddress,
        secrets_keys: str,
        stages: Stages,
        page: MetricsPage,
        listening: socket.socket,
    ) -> None:
        own = environment_of(
            settings,
            HOOKSAGA_DATABASE_URL=address.url,
            HOOKSAGA_PREPARED_STATEMENTS=str(address.prepare),
            HOOKSAGA_SECRETS_KEY=secrets_keys,
        )
        self._environment: Mapping[str, str] = {**os.environ, **own}
        self._stages = stages
        self._page = page
        self._listening = listening
        self._may_serve = False
        self.ready = asyncio.Event()
        self._stopping = False
        self._process: Process | None = None
        self._channel: Channel | None = None
        self._restarts: deque[float] = deque()
        self._answers: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run the process until it is told to stop. Raises ApiEnded if it ends too often by itself."""
        while not self._stopping:
            code = await self._run_once()
            if not self._stopping:
                self._note_end(code)

    def serve(self) -> None:
        """Let the process take requests from now on."""
        self._may_serve = True
        if self._channel is not None:
            self._channel.send(SERVE)

    def stop(self) -> None:
        """Accept no more requests, and let those in flight end."""
        self._stopping = True
        self._listening.close()
        if self._channel is not None:
            self._channel.send(STOP)
        asyncio.get_running_loop().call_later(STOP_SECONDS, self._kill)

    def abandon(self) -> None:
        """End at once."""
        self._stopping = True
        self._listening.close()
        self._kill()

    async def close(self) -> None:
        """Do nothing: the process has closed what it used."""

    async def _run_once(self) -> int:
        """Run the process once, and return its exit code."""
        ours, theirs = socket.socketpair()
        descriptors = (theirs.fileno(), self._listening.fileno())
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", PROGRAM, *map(str, descriptors)),
                pass_fds=descriptors,
                env=self._environment,
                stdin=DEVNULL,
                stderr=PIPE,
            )
        self._process = process
        try:
            await self._listen(ours)
            await _pass_on_log(process)
            return await process.wait()
        finally:
            if self._channel is not None:
                self._channel.close()  # its end: a process that still runs ends itself
            self._channel = None

    async def _listen(self, ours: socket.socket) -> None:
        channel = Channel(self._on_message, lambda: None)
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=ours)
        self._channel = channel
        if self._may_serve:
            channel.send(SERVE)
        if self._stopping:
            channel.send(STOP)

    def _note_end(self, code: int) -> None:
        now = time.monotonic()
        while self._restarts and self._restarts[0] < now - WITHIN_SECONDS:
            self._restarts.popleft()
        if len(self._restarts) >= MAX_RESTARTS:
            raise ApiEnded(
                f"the process of the API has ended {MAX_RESTARTS + 1} times within {WITHIN_SECONDS:.0f} s; see the log"
            )
        self._restarts.append(now)
        logger.error("api process ended", extra={"exit_code": code})

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _on_message(self, word: bytes, body: bytes) -> None:
        if word == EVENTS:
            self._stages.events_accepted()
        elif word == SAGAS:
            self._stages.sagas_started()
        elif word == COUNTS:
            take_counts(body, self._page.counted)
        elif word == READY:
            self.ready.set()
        elif word == PAGE and self._channel is not None:
            answer = asyncio.create_task(self._send_page(self._channel))
            self._answers.add(answer)
            answer.add_done_callback(self._answers.discard)

    async def _send_page(self, channel: Channel) -> None:
        channel.send(PAGE, msgspec.json.encode((await self._page.text()).decode()))


async def _pass_on_log(process: Process) -> None:
    """Write what the process writes to standard error into the log of this one, in whole lines, until it ends."""
    assert process.stderr is not None
    rest = b""
    while data := await process.stderr.read(READ_BYTES):
        lines, newline, rest = (rest + data).rpartition(b"\n")
        if newline:
            write_text(logger, lines)
    if rest:
        write_text(logger, rest)
