"""Counts that end somewhere, so that counting costs the same however many rows there are."""

from dataclasses import dataclass

MAX_COUNTED = 10_000
"""Limit of counting: this number means that many or more."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows. at_least: counting ended before the rows did."""

    value: int
    at_least: bool = False

    def __bool__(self) -> bool:
        return self.value > 0 or self.at_least

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.at_least else ''}"
