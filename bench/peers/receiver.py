"""nginx as the receiver of a comparison: a process and a folder of its own, gone afterwards."""

import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hooksaga.local.tls import ensure_certificates

CONFIGURATION = Path(__file__).with_name("nginx.conf")
START_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Nginx:
    """A running receiver. `url` answers every POST with 200; `ca_file` is what its clients trust."""

    url: str
    ca_file: Path
    pid: int

    def requests(self) -> int:
        """How many it has answered since its start, this question included."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        address = f"{self.url.removesuffix('/ok')}/count"
        with urllib.request.urlopen(address, context=context) as answer:  # noqa: S310 - https, above
            return int(answer.read().split()[9])


@contextmanager
def running_nginx(folder: Path) -> Generator[Nginx]:
    """Raises FileNotFoundError without nginx, TimeoutError when it does not listen within START_SECONDS."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise FileNotFoundError("nginx: install it, for example with apt-get install nginx-light")
    ca_file = ensure_certificates(folder).ca
    port = _free_port()
    path = folder / "nginx.conf"
    path.write_text(CONFIGURATION.read_text().replace("@FOLDER@", str(folder)).replace("@PORT@", str(port)))
    process = subprocess.Popen([program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(path)])
    try:
        nginx = Nginx(f"https://127.0.0.1:{port}/ok", ca_file, process.pid)
        _wait_until_it_answers(nginx)
        yield nginx
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(nginx: Nginx) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            nginx.requests()
        except urllib.error.URLError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nginx does not answer: {error}") from error
            time.sleep(0.05)
        else:
            return
