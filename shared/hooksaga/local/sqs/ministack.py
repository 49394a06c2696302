"""An SQS API on this machine: an existing endpoint, or ministack in a pinned version and a clean environment.

ministack is a Python program that emulates AWS's APIs. It pins its own botocore, so it may be installed in another
virtual environment: HOOKSAGA_MINISTACK_PYTHON names its interpreter.
"""

import asyncio
import importlib.util
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from hooksaga.local.sqs.sqs_api import SqsApi, SqsError

VERSION = "1.5.33"
HOST = "127.0.0.1"
START_SECONDS = 30.0


class NoSqsEndpoint(ConnectionError):
    """There is no SQS API, and none could be started. The message says what to install or to set."""


class Ministack:
    """One process, started by this object, with its state in memory."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.endpoint = ""

    async def start(self) -> str:
        """Start it and return the endpoint once it answers. Raises NoSqsEndpoint."""
        python = _interpreter()
        port = _free_port()
        self.endpoint = f"http://{HOST}:{port}"
        self._home = tempfile.TemporaryDirectory(prefix="hooksaga-ministack-")
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(python, "-m", "ministack"),
                env=_clean_environment(port, self._home.name),
                cwd=self._home.name,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        await self._wait_until_it_answers()
        return self.endpoint

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._home.cleanup()

    async def reset(self) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.endpoint}/_ministack/reset") as answer,
        ):
            answer.raise_for_status()

    async def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        async with SqsApi(self.endpoint) as api:
            while True:
                try:
                    await api.call("ListQueues")
                    return
                except SqsError as error:
                    if self._process.returncode is not None or time.monotonic() > deadline:
                        await self.stop()
                        raise NoSqsEndpoint(f"ministack did not start; its log is {self._log}") from error
                await asyncio.sleep(0.05)


def given_endpoint() -> str | None:
    """Return the endpoint of AWS_ENDPOINT_URL or LOCALSTACK_HOST (host, or host:port), or None."""
    if url := os.environ.get("AWS_ENDPOINT_URL"):
        return url
    if host := os.environ.get("LOCALSTACK_HOST"):
        return f"http://{host if ':' in host else host + ':4566'}"
    return None


def is_installed() -> bool:
    return (
        bool(os.environ.get("HOOKSAGA_MINISTACK_PYTHON")) or importlib.util.find_spec("ministack") is not None
    )


def _interpreter() -> str:
    if not is_installed():
        raise NoSqsEndpoint(
            f"SQS mode needs an SQS API: pip install ministack=={VERSION}, or set HOOKSAGA_MINISTACK_PYTHON to the "
            "python of an environment that has it, or LOCALSTACK_HOST to an endpoint that listens already"
        )
    return os.environ.get("HOOKSAGA_MINISTACK_PYTHON") or sys.executable


def _clean_environment(port: int, home: str) -> dict[str, str]:
    """Return an environment without this shell's variables, because functions inside ministack inherit it."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "LOG_LEVEL": "WARNING",
        "IOT_MTLS_ENABLED": "0",  # it would listen on all interfaces
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
