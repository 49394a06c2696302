"""Result of one check of the doctor."""

from dataclasses import dataclass, field
from enum import StrEnum


class Health(StrEnum):
    """Result of a check. SKIPPED: the check was not possible or not requested, which is not a fault."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement and its result. Each fault says what is wrong and what to do; no faults mean that it is met.

    seen: the value that was found.
    """

    name: str
    faults: list[str] = field(default_factory=list[str])
    seen: str = ""
    skipped: bool = False

    @property
    def health(self) -> Health:
        if self.faults:
            return Health.FAILED
        return Health.SKIPPED if self.skipped else Health.OK


def skipped(name: str, why: str) -> Check:
    """Check that was not made, with the reason."""
    return Check(name, seen=why, skipped=True)
