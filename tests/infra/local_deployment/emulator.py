"""AWS on this machine for as long as a deployment is tried: ministack, with the roles' policies enforced.

It runs functions under its own Python, so that Python's version is what their bundles are made for. It may live in an
environment of its own: HOOKSAGA_MINISTACK_PYTHON names the interpreter.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.node import node_folder

VERSION = "1.5.33"
HOST = "127.0.0.1"
START_SECONDS = 30.0


class NoEmulator(RuntimeError):
    """There is no emulator and none could be started; the message says what to install or to set."""


def interpreter() -> str:
    """The Python that has ministack. Raises NoEmulator."""
    if given := os.environ.get("HOOKSAGA_MINISTACK_PYTHON"):
        return given
    if importlib.util.find_spec("ministack") is None:
        raise NoEmulator(
            f"an emulator is needed: pip install ministack=={VERSION} cryptography, or set HOOKSAGA_MINISTACK_PYTHON "
            "to the python of an environment that has them, or AWS_ENDPOINT_URL to an emulator that runs already"
        )
    return sys.executable


class Emulator:
    """One process, which holds everything in memory and ends with the `with` block."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.endpoint = ""
        self.python = ""

    def __enter__(self) -> Self:
        python, port = interpreter(), _free_port()
        self.endpoint = f"http://{HOST}:{port}"
        self.python = _version_of(python)
        self._home = tempfile.TemporaryDirectory(prefix="hooksaga-emulator-")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [python, "-m", "ministack"],
                env=_environment(port, self._home.name),
                cwd=self._home.name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_listens(port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def _wait_until_it_listens(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                log = self._log.read_text(encoding="utf-8", errors="replace")
                raise NoEmulator(f"ministack did not start within {START_SECONDS:g} s:\n{log[-4000:]}")
            time.sleep(0.05)


def _environment(port: int, home: str) -> dict[str, str]:
    """Functions inherit what the emulator has, so it is given nothing of this shell. Node is for CloudFormation's
    custom resources."""
    node = node_folder()
    folders = [*([str(node)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(folders),
        "HOME": home,
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "AUTH": "true",
        "IOT_MTLS_ENABLED": "0",  # it would listen on every address
        "LOG_LEVEL": "WARNING",
    }


def _version_of(python: str) -> str:
    ask = "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    return subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
