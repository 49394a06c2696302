"""`hooksaga up` and `hooksaga receiver` on a terminal: short lines for people, and JSON when asked or piped."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run, runner_with
from tests.cli.processes import COMMAND, CommandProcess, environment, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals"),
]


class OnATerminal:
    """`hooksaga ARGUMENTS` whose output and errors are one terminal."""

    def __init__(self, folder: Path, settings: dict[str, str], *arguments: str) -> None:
        import pty

        self._master, slave = pty.openpty()
        env = {**environment(settings), "TERM": "xterm", "COLUMNS": "120"}
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder
        )
        os.close(slave)
        self._read = bytearray()
        self._thread = threading.Thread(target=self._collect, name="terminal")
        self._thread.start()

    def _collect(self) -> None:
        while True:
            try:
                part = os.read(self._master, 65_536)
            except OSError:  # the other side is closed
                return
            if not part:
                return
            self._read += part

    @property
    def output(self) -> str:
        """What a reader sees, without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self._read.decode(errors="replace")).replace("\r\n", "\n")

    def wait_for(self, pattern: str) -> str:
        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.output)
            assert match or self.process.poll() is None, self.output
            return match

        return wait_until(found, pattern, 60)[1]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
        self._thread.join(10)
        os.close(self._master)


@pytest.fixture(scope="module")
def folder(make_folder: Callable[[], Path]) -> Path:
    made = make_folder()
    assert runner_with({"HOOKSAGA_DATA_DIR": str(made)})("migrate").exit_code == 0
    return made


@pytest.fixture
def receiver(folder: Path) -> Iterator[OnATerminal]:
    made = OnATerminal(folder, {"HOOKSAGA_DATA_DIR": str(folder)}, "receiver", "--port", "0")
    yield made
    made.stop()


def subscribed(run: Run, url: str, event_type: str) -> str:
    created = run("subscriptions", "create", "--event-type", event_type, "--callback-url", url)
    assert created.exit_code == 0, created.output
    return created.stdout.split()[1]


def test_a_terminal_shows_what_happens(folder: Path, receiver: OnATerminal) -> None:
    url = receiver.wait_for(r"receiver at (https://\S+?),")
    data = {"HOOKSAGA_DATA_DIR": str(folder)}
    up = OnATerminal(folder, data, "up", "--port", "0", "--local-receivers")
    try:
        address = up.wait_for(r"ready at (http://\S+)")
        run = runner_with({**data, "HOOKSAGA_API_URL": address})
        for path in ("/ok", "/status/503"):
            one = subscribed(run, f"{url}{path}", f"terminal{path.replace('/', '.')}")
            told = run("subscriptions", "verify", one)
            assert f"Next: hooksaga subscriptions test {one}" in told.output
            run("subscriptions", "test", one)
        assert up.wait_for(r"(subscription \d+ fails: http_503 \(attempt 1, next attempt at )")
        assert f"{address}/console/subscriptions/" in up.output
        assert up.wait_for(r"(\d accepted)")
        assert up.wait_for(r"(1 delivered)")
        assert '"level"' not in up.output
        assert receiver.wait_for(r"/ok  (verification  signature unchecked  answered 200)")
        assert receiver.wait_for(r"(/status/503  terminal.status.503  attempt 1  evt_\w+  .*answered 503)")
    finally:
        up.stop()
    assert up.process.returncode == 0


@pytest.mark.parametrize("form", ["json", "auto"])
def test_json_is_written_when_asked_or_piped(folder: Path, form: str) -> None:
    data = {"HOOKSAGA_DATA_DIR": str(folder)}
    up = CommandProcess(folder, data, "up", "--port", "0", "--log", form)
    try:
        run = runner_with({**data, "HOOKSAGA_API_URL": up.wait_for(r"ready at (http://\S+)")})
        assert run("send", "-", "--event-type", "piped.event", stdin=b"{}").exit_code == 0
        wait_until(lambda: "event routed" in up.errors, "the event is in the log")
        lines = [json.loads(line) for line in up.errors.splitlines() if line.startswith("{")]
        assert any(line["message"] == "event routed" for line in lines)
    finally:
        assert up.stop(signal.SIGINT) == 0


def test_short_lines_can_be_asked_for(folder: Path) -> None:
    data = {"HOOKSAGA_DATA_DIR": str(folder)}
    up = CommandProcess(folder, data, "up", "--port", "0", "--log", "text")
    try:
        run = runner_with({**data, "HOOKSAGA_API_URL": up.wait_for(r"ready at (http://\S+)")})
        assert run("send", "-", "--event-type", "piped.event", stdin=b"{}").exit_code == 0
        wait_until(lambda: "1 accepted" in up.errors, "the count is printed")
    finally:
        assert up.stop(signal.SIGINT) == 0
