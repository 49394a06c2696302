"""How many jobs may be claimed so that their payloads find room in memory together."""

from collections.abc import Sequence

MOST_CHARACTERS = 64 * 2**20
"""Of all payloads that one lane holds. A POST takes about three times its payload."""


class PayloadMemory:
    """Counts what is claimed, and guesses the next ones: as large as any may be at first, later as the last ones."""

    def __init__(self, largest_payload: int) -> None:
        self._taken = 0
        self._expected = largest_payload

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be claimed until something has ended."""
        return self._taken > 0 and self._taken + self._expected > MOST_CHARACTERS

    @property
    def room(self) -> int:
        """So many jobs, one at least: what has no room beside others has to be sent alone."""
        return max(1, (MOST_CHARACTERS - self._taken) // self._expected)

    def take(self, sizes: Sequence[int]) -> None:
        """Jobs with payloads of these sizes are claimed."""
        self._taken += sum(sizes)
        self._expected = max(self._expected // 2, *sizes, 1)

    def give_back(self, size: int) -> None:
        """Of one whose POST has ended, or never began."""
        self._taken -= size
