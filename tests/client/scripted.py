"""A call without a network: its steps are answered from a list, on a clock that stands still but for its pauses."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from hooksaga.client.answers import Answer, Outcome
from hooksaga.client.exchange import Attempt, Chances, Steps

T = TypeVar("T")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Scripted:
    """dice: what every throw gives. attempt_seconds: how long each attempt takes."""

    outcomes: Sequence[Outcome]
    dice: float = 0
    attempt_seconds: float = 0
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    elapsed: float = 0

    def chances(self) -> Chances:
        numbers = itertools.count(1)
        return Chances(
            clock=lambda: self.elapsed,
            now=lambda: BEGIN + timedelta(seconds=self.elapsed),
            dice=lambda: self.dice,
            new_key=lambda: f"made-{next(numbers)}",
        )

    def run(self, steps: Steps[T]) -> T:
        """Return what the call returns or raises. It must not request more attempts than there are outcomes."""
        left = iter(self.outcomes)
        try:
            attempt = next(steps)
            while True:
                self.attempts.append(attempt)
                self.elapsed += attempt.pause_seconds + self.attempt_seconds
                attempt = steps.send(next(left))
        except StopIteration as done:
            return done.value

    @property
    def pauses(self) -> list[float]:
        return [attempt.pause_seconds for attempt in self.attempts]


def accepted(number: int = 1, *, duplicate: bool = False) -> dict[str, Any]:
    return {
        "id": f"evt_{number:032x}",
        "event_type": "a",
        "created_at": "2026-01-01T00:00:00.123456Z",
        "duplicate": duplicate,
    }


def answer(status: int, content: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, b"" if content is None else json.dumps(content).encode(), named)


def problem(status: int, code: str, **more: Any) -> dict[str, Any]:
    return {"status": status, "code": code, "detail": f"why {code}", **more}
