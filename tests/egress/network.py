"""A process in mount and network namespaces of its own, where this test's name server is the only one.

The system's resolver, the sockets and TLS in there are real; nothing in there can reach a real network.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hostile_cases import note

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30


def unshare() -> list[str]:
    """The command that isolates what follows it."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *as_root, "--mount", "--net"]


def why_not() -> str | None:
    """Return why this machine cannot have such a network; cached."""
    tools = [tool for tool in ("unshare", "ip", "mount") if shutil.which(tool) is None]
    files = [path for path in ("/etc/resolv.conf", "/proc/net/if_inet6") if not Path(path).exists()]
    if tools or files:
        return f"this machine has no {', '.join(tools + files)}"
    tried = subprocess.run([*unshare(), "true"], capture_output=True, text=True, timeout=SECONDS)
    return f"namespaces are not permitted here: {tried.stderr.strip()}" if tried.returncode else None


class IsolatedNetwork:
    """Makes attempts inside, one at a time. One that does not end kills the process, and the test with it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._read() == "ready"

    def attempt(self, **wanted: str) -> dict[str, Any]:
        """Run a `case` or a `row` and return the observation; outcomes are recorded."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        seen = self._read()
        for one in seen["outcomes"]:
            note(one["error_code"] or f"{one['response_status']} at {one['resolved_ip']}")
        return seen

    def _read(self) -> Any:
        assert self._process.stdout is not None
        deadline = threading.Timer(SECONDS, self._process.kill)
        deadline.start()
        try:
            return json.loads(self._process.stdout.readline())
        finally:
            deadline.cancel()


@contextmanager
def isolated_network() -> Iterator[IsolatedNetwork]:
    """Until the block ends. Only where why_not() has nothing to say."""
    command = [*unshare(), sys.executable, "-m", "tests.egress.isolated"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    try:
        yield IsolatedNetwork(process)
    finally:
        process.communicate(timeout=SECONDS)
