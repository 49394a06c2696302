"""What the doctor says of one thing."""

from dataclasses import dataclass, field
from enum import StrEnum


class Health(StrEnum):
    """SKIPPED: it could not be looked at, or was not asked for; that is no fault."""

    OK = "ok"
    ILL = "ill"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so. faults is empty when it is, else each says what is not, and what to do.

    seen: the value that was found.
    """

    name: str
    faults: list[str] = field(default_factory=list[str])
    seen: str = ""
    skipped: bool = False

    @property
    def health(self) -> Health:
        if self.faults:
            return Health.ILL
        return Health.SKIPPED if self.skipped else Health.OK


def skipped(name: str, why: str) -> Check:
    """Not looked at, for that reason."""
    return Check(name, seen=why, skipped=True)
