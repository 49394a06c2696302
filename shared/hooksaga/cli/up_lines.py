"""The log of `hooksaga up` for people: short lines of what is accepted, delivered and failing, in place of JSON.

It takes the lines of the log, so nothing else has to report twice. What is frequent is counted, and printed every few
seconds. An endpoint that fails is named with the reason when it begins, when the reason changes, and once a minute.
"""

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hooksaga.cli.terminal import printable

SUMMARY_SECONDS = 2.0
REPEAT_SECONDS = 60.0
MAX_FAILING = 1_000
"""Endpoints whose failures are remembered; further ones are only counted."""

_COUNTED = {
    "Completed": "delivered",
    "PendingRetry": "failed and waiting for a retry",
    "DeadLettered": "dead-lettered",
}
_ORDER = ("accepted", *_COUNTED.values())
_SILENT = frozenset({"attempt", "event partly routed"})
_TOLD = frozenset({"endpoint recovered", "circuit breaker closed"})
"""Lines of level INFO that are printed as they are."""

_NOT_SHOWN = frozenset(
    {"level", "message", "timestamp", "service", "xray_trace_id", "exception", "stack_trace", "location"}
)


class LogForm(StrEnum):
    """Form of the log: short lines for people, or one JSON object per line."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


@dataclass(slots=True)
class _Failing:
    reason: str
    told_at: float


@dataclass(slots=True)
class Digest:
    """Lines for people from lines of the log. clock: seconds. console: address of the console, without a slash."""

    console: str = ""
    clock: Callable[[], float] = time.monotonic
    _counts: Counter[str] = field(default_factory=Counter[str])
    _failing: dict[int, _Failing] = field(default_factory=dict[int, _Failing])
    _summed_at: float = 0.0

    def take(self, line: dict[str, Any]) -> list[str]:
        """Return what is printed at once for a line of the log."""
        match line["message"]:
            case "event routed":
                self._counts["accepted"] += 1
                return []
            case "saga moved":
                return self._moved(line)
            case message if message in _SILENT or (line["level"] == "INFO" and message not in _TOLD):
                return []
            case message:
                return [f"{message}{_details(line)}"]

    def due(self) -> str | None:
        """Return the counts since the last time, unless there are none or it is too early."""
        now = self.clock()
        if not self._counts or now - self._summed_at < SUMMARY_SECONDS:
            return None
        self._summed_at = now
        said = ", ".join(f"{self._counts[name]:,} {name}" for name in _ORDER if self._counts[name])
        self._counts.clear()
        return said

    def _moved(self, line: dict[str, Any]) -> list[str]:
        status, subscription = str(line["status"]), int(line["subscription_id"])
        if status in _COUNTED:
            self._counts[_COUNTED[status]] += 1
        if status == "Completed":
            return (
                [f"subscription {subscription} works again"] if self._failing.pop(subscription, None) else []
            )
        reason = line.get("error_code")
        return self._fails(subscription, str(reason), line) if reason and status in _COUNTED else []

    def _fails(self, subscription: int, reason: str, line: dict[str, Any]) -> list[str]:
        known, now = self._failing.get(subscription), self.clock()
        is_told = known is not None and known.reason == reason and now - known.told_at < REPEAT_SECONDS
        if is_told or (known is None and len(self._failing) >= MAX_FAILING):
            return []
        self._failing[subscription] = _Failing(reason, now)
        then = line.get("next_attempt_at")
        after = f"next attempt at {_local(then)}" if then else f"dead letter {line.get('dead_letter_id')}"
        said = f"subscription {subscription} fails: {reason} (attempt {line['attempt_count']}, {after})"
        return [said, f"  {self.console}/subscriptions/{subscription}"]


def _details(line: dict[str, Any]) -> str:
    shown = [
        f"{name}={value}" for name, value in line.items() if name not in _NOT_SHOWN and value is not None
    ]
    return f" ({', '.join(shown)})" if shown else ""


def _local(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")


class UpLines:
    """A stream for the handler of the log: it gets JSON lines, and prints short ones on the terminal."""

    def __init__(self, digest: Digest) -> None:
        from hooksaga.cli.terminal import console

        self._digest = digest
        self._console = console(stderr=True)
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        for line in filter(None, text.split("\n")):
            self._take(line)
        return len(text)

    def flush(self) -> None:
        """Do nothing: each line is printed at once."""

    async def print_counts(self, console: str) -> None:
        """Print the counts when they are due, until it is cancelled. console: address of the console."""
        self._digest.console = console
        while True:
            await asyncio.sleep(1)
            with self._lock:
                said = self._digest.due()
            if said is not None:
                self._print(said, "INFO")

    def _take(self, text: str) -> None:
        try:
            line: dict[str, Any] = json.loads(text)
            with self._lock:
                said = self._digest.take(line)
        except (ValueError, KeyError, TypeError):  # no line of ours: shown as it is
            self._console.print(printable(text))
            return
        for one in said:
            self._print(one, str(line["level"]))

    def _print(self, text: str, level: str) -> None:
        from rich.text import Text

        style = {"WARNING": "yellow", "ERROR": "bold red", "CRITICAL": "bold red"}.get(level, "")
        now = time.strftime("%H:%M:%S")
        self._console.print(Text.assemble((f"{now}  ", "dim"), (printable(text), style)), soft_wrap=True)


def is_text(form: LogForm) -> bool:
    """Return whether the log is for people: as asked for, else if it goes to a terminal."""
    return form is LogForm.TEXT or (form is LogForm.AUTO and sys.stderr.isatty())
