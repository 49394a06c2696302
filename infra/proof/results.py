"""The result of one step of the proof."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """UNAVAILABLE: nothing of the step was possible at this place. It is never counted as passed."""

    PASSED = "passed"
    FAILED = "failed"
    UNAVAILABLE = "not available here"


class StepFailed(RuntimeError):
    """The step cannot go on, and no later step makes sense without it. The message is for the terminal and the page."""


@dataclass(slots=True)
class Result:
    """`done`: what was done, in sentences. `figures`: measured values by name. `unavailable`: what this place lacks.

    faults: what did not hold; a step with one has failed, and the run goes on.
    """

    step: str
    seconds: float = 0
    done: list[str] = field(default_factory=list[str])
    figures: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])
    unavailable: list[str] = field(default_factory=list[str])

    @property
    def outcome(self) -> Outcome:
        if self.faults:
            return Outcome.FAILED
        return Outcome.UNAVAILABLE if self.unavailable and not self.done else Outcome.PASSED

    def require(self, holds: bool, fault: str) -> None:
        """Note a fault if something does not hold."""
        if not holds:
            self.faults.append(fault)

    def content(self) -> dict[str, Any]:
        return {**asdict(self), "outcome": self.outcome.value}

    @classmethod
    def read(cls, content: dict[str, Any]) -> "Result":
        return cls(**{name: value for name, value in content.items() if name != "outcome"})
