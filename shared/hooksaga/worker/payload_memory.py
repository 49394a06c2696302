"""Limit on claimed jobs, so that their payloads fit in memory together."""

from collections.abc import Sequence

MAX_CHARACTERS = 64 * 2**20
"""Limit of all payloads of one lane. A POST takes about three times its payload."""


class PayloadMemory:
    """Counts claimed payloads and estimates the next ones: as the maximum size at first, later as large as the last."""

    def __init__(self, largest_payload: int) -> None:
        self._taken = 0
        self._expected = largest_payload

    @property
    def is_full(self) -> bool:
        """Whether no job may be claimed until one has ended."""
        return self._taken > 0 and self._taken + self._expected > MAX_CHARACTERS

    @property
    def room(self) -> int:
        """Number of jobs that fit, at least one: a payload too large to fit beside others is sent alone."""
        return max(1, (MAX_CHARACTERS - self._taken) // self._expected)

    def take(self, sizes: Sequence[int]) -> None:
        """Note claimed jobs with payloads of these sizes, in characters."""
        self._taken += sum(sizes)
        self._expected = max(self._expected // 2, *sizes, 1)

    def give_back(self, size: int) -> None:
        """Release the memory of a job whose POST ended or never started."""
        self._taken -= size
