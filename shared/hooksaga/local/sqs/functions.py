"""Lambda functions on this machine: a pool of execution environments for each."""

import asyncio
import json
from pathlib import Path
from typing import Any

from hooksaga.local.sqs.runtime_api import MAX_REQUEST_BYTES, Environment, FunctionSpec, Outcome


class RequestTooLarge(ValueError):
    """The event exceeds Lambda's limit for synchronous invocations."""


class LambdaFunction:
    """Invokes one function, with at most its concurrency of invocations at once; others wait."""

    def __init__(self, spec: FunctionSpec, log_dir: Path) -> None:
        self.spec = spec
        self.invocations = 0
        self._log = log_dir / f"{spec.name}.log"
        self._free = asyncio.Semaphore(spec.concurrency)
        self._idle: list[Environment] = []
        self._all: set[Environment] = set()

    async def invoke(self, event: Any) -> Outcome:
        """Invoke the function once and return the outcome. Raises RequestTooLarge for an event over 6 MB."""
        body = json.dumps(event).encode()
        if len(body) > MAX_REQUEST_BYTES:
            raise RequestTooLarge(
                f"Request must be smaller than {MAX_REQUEST_BYTES} bytes for the InvokeFunction operation"
            )
        async with self._free:
            environment = await self._take()
            self.invocations += 1
            try:
                return await environment.invoke(body)
            finally:
                await self._put_back(environment)

    async def warm_up(self) -> None:
        """Start one process, so that the first invocation does not wait for it."""
        if not self._all:
            environment = await self._take()
            await environment.wait_until_ready()
            await self._put_back(environment)

    async def stop(self) -> None:
        await asyncio.gather(*(environment.stop() for environment in self._all))
        self._all.clear()
        self._idle.clear()

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    async def _take(self) -> Environment:
        while self._idle:
            environment = self._idle.pop()  # the most recently used one, like Lambda
            if environment.alive:
                return environment
            await self._drop(environment)
        environment = Environment(self.spec, self._log)
        await environment.start()
        self._all.add(environment)
        return environment

    async def _put_back(self, environment: Environment) -> None:
        if environment.alive:
            self._idle.append(environment)
        else:
            await self._drop(environment)

    async def _drop(self, environment: Environment) -> None:
        self._all.discard(environment)
        await environment.stop()
