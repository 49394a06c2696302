"""The Lambda runtime API for one process on this machine.

AWS's own client (`awslambdaric`) runs the handler against it, so a handler runs as on Lambda: a clean environment, a
cold start, warm invocations in the same process, a deadline, a kill at the timeout, and errors in Lambda's format.
"""

import asyncio
import importlib.util
import json
import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hooksaga.adapters.package_files import package_folder
from hooksaga.local.sqs.runtime_http import (
    MAX_RESPONSE_BYTES,
    exit_error,
    read_request,
    response,
    too_large,
)

HOST = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
TASK_ROOT = package_folder("functions").parent
VERSION_PATH = "/2018-06-01/runtime"
INIT_SECONDS = 30.0
MAX_REQUEST_BYTES = 6_291_456


class NoRuntimeClient(OSError):
    """awslambdaric, which functions need, is not installed."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """Configuration of one function, as on AWS. `environment`: its variables besides Lambda's own."""

    name: str
    handler: str
    timeout_seconds: float
    environment: Mapping[str, str]
    memory_mb: int = 512
    concurrency: int = 2

    @property
    def arn(self) -> str:
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an invocation. `error` has Lambda's format, None after success; `pid` is the process."""

    request_id: str
    pid: int
    cold: bool
    seconds: float
    payload: Any = None
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class _Invocation:
    """`picked` is done once the process has taken it: its timeout counts from then."""

    event: bytes
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    picked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Future[tuple[bool, bytes]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Environment:
    """An execution environment: one process, one invocation at a time. A timeout kills it, as on AWS."""

    def __init__(self, spec: FunctionSpec, log: Path) -> None:
        self._spec = spec
        self._log = log
        self._waiting: asyncio.Queue[_Invocation] = asyncio.Queue()
        self._current: _Invocation | None = None
        self._init_error: dict[str, Any] | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._used = False
        self._refused_answer = False
        self._asked = asyncio.Event()

    async def start(self) -> None:
        """Start the process; the first invocation waits for its cold start. Raises NoRuntimeClient."""
        if importlib.util.find_spec("awslambdaric") is None:
            raise NoRuntimeClient("functions run under AWS's runtime client: pip install 'hooksaga[sqs]'")
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=2**24)
        port = self._server.sockets[0].getsockname()[1]
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "awslambdaric", self._spec.handler),
                env=process_environment(self._spec, port),
                cwd=TASK_ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._watch = asyncio.create_task(self._watch_process())

    async def wait_until_ready(self) -> None:
        """Wait until the process requests its first invocation, or has ended."""
        await _first(self._asked.wait(), self._watch)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def busy(self) -> bool:
        return self._current is not None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        self.kill()
        await self._watch
        self._server.close()
        connections = dict(self._connections)
        for conversation, writer in connections.items():
            conversation.cancel()
            writer.transport.abort()
        await asyncio.gather(*connections, return_exceptions=True)

    async def invoke(self, event: bytes) -> Outcome:
        """Run the handler once. Errors of the function are part of the outcome."""
        invocation = self._current = _Invocation(event)
        cold, self._used = not self._used, True
        self._waiting.put_nowait(invocation)
        started = time.monotonic()
        try:
            payload, error = await self._outcome(invocation)
        except asyncio.CancelledError:
            self.kill()  # its answer is no longer awaited, and must not be taken for the next one's
            raise
        finally:
            self._current = None
        seconds = time.monotonic() - started
        return Outcome(invocation.request_id, self.pid, cold, seconds, payload, error)

    async def _outcome(self, invocation: _Invocation) -> tuple[Any, dict[str, Any] | None]:
        limit = self._spec.timeout_seconds
        try:
            async with asyncio.timeout(INIT_SECONDS):
                await _first(invocation.picked.wait(), self._watch, invocation.answer)
            async with asyncio.timeout(limit):
                await _first(invocation.answer, self._watch)
        except TimeoutError:
            self.kill()
            await self._watch
            message = f"RequestId: {invocation.request_id} Error: Task timed out after {limit:.2f} seconds"
            return None, {"errorType": "Sandbox.Timedout", "errorMessage": message}
        if not invocation.answer.done():
            return None, self._init_error or exit_error(invocation.request_id, self._process.returncode)
        good, body = invocation.answer.result()
        if self._refused_answer:  # on which the client ends its process
            self.kill()
            await self._watch
        return (json.loads(body), None) if good else (None, json.loads(body))

    async def _watch_process(self) -> None:
        await self._process.wait()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not a coroutine: one that is cancelled before its first step could not close its connection."""

        def over(conversation: asyncio.Task[None]) -> None:
            self._connections.pop(conversation).close()

        conversation = asyncio.create_task(self._converse(reader, writer))
        self._connections[conversation] = writer
        conversation.add_done_callback(over)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader, writer):
                status, headers, body = await self._answer(*request)
                writer.write(response(status, headers, body))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the process died or was stopped

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[str, dict[str, str], bytes]:
        if (method, path) == ("GET", f"{VERSION_PATH}/invocation/next"):
            return await self._next()
        if (method, path) == ("POST", f"{VERSION_PATH}/init/error"):
            self._init_error = json.loads(body)
            return "202 Accepted", {}, b'{"status":"OK"}'
        request_id, _, kind = path.removeprefix(f"{VERSION_PATH}/invocation/").partition("/")
        current = self._current
        if method != "POST" or current is None or current.request_id != request_id or current.answer.done():
            return (
                "400 Bad Request",
                {},
                b'{"errorMessage":"Invalid request ID","errorType":"InvalidRequestID"}',
            )
        if len(body) > MAX_RESPONSE_BYTES:
            self._refused_answer = True
            current.answer.set_result((False, too_large(len(body))))
            return "413 Payload Too Large", {}, too_large(len(body))
        current.answer.set_result((kind == "response", body))
        return "202 Accepted", {}, b'{"status":"OK"}'

    async def _next(self) -> tuple[str, dict[str, str], bytes]:
        self._asked.set()
        invocation = await self._waiting.get()
        invocation.picked.set()
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + self._spec.timeout_seconds) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": self._spec.arn,
            "Lambda-Runtime-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
        }
        return "200 OK", headers, invocation.event


def process_environment(spec: FunctionSpec, port: int) -> dict[str, str]:
    """Return the environment of a process: Lambda's variables, emulator credentials, the function's own variables."""
    return {
        "AWS_LAMBDA_RUNTIME_API": f"{HOST}:{port}",
        "AWS_LAMBDA_FUNCTION_NAME": spec.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory_mb),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{spec.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{time.strftime('%Y/%m/%d')}/[$LATEST]{uuid.uuid4().hex}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python3.{sys.version_info.minor}",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "_HANDLER": spec.handler,
        "LAMBDA_TASK_ROOT": str(TASK_ROOT),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        **spec.environment,
    }


async def _first(*awaited: Any) -> None:
    """Wait until one of them is done; cancel only the coroutines among them."""
    coroutines = [asyncio.ensure_future(one) for one in awaited if asyncio.iscoroutine(one)]
    futures = [one for one in awaited if not asyncio.iscoroutine(one)]
    try:
        await asyncio.wait([*coroutines, *futures], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in coroutines:
            task.cancel()
