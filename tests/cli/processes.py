"""The command as a real process, with its output in files that a test can wait for."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 30.0
COMMAND = (sys.executable, "-m", "hooksaga.cli.app")


def wait_until(condition: Callable[[], T | None], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """The first answer that is true. Fails the test when there is none in time."""
    give_up = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < give_up, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return answer


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This environment without any setting of ours but those given."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("HOOKSAGA_")}
    return {**others, **settings}


class CommandProcess:
    """`hooksaga ARGUMENTS`, with the settings given."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *arguments: str) -> None:
        self._output = folder / f"{arguments[0]}-{time.monotonic_ns()}.out"
        self._errors = self._output.with_suffix(".err")
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments], stdout=output, stderr=errors, env=environment(settings), cwd=folder
            )

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    @property
    def errors(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def wait_for(self, pattern: str) -> str:
        """The first group of the pattern, once the output holds it."""

        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.output)
            assert match or self.process.poll() is None, f"ended early: {self.output}{self.errors}"
            return match

        return wait_until(found, f"{pattern} in {self._output}")[1]

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(DEADLINE_SECONDS)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.process.send_signal(number)
        return self.ended()

    def kill(self) -> None:
        """Whatever state it is in."""
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
