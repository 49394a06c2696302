"""Retry rules of the client. Pure: times and random numbers are arguments."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from hooksaga.client.answers import NoAnswer, Outcome

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of the attempts of one call.

    attempts: maximum number, including the first. total_seconds: no attempt starts later, and the timeouts of an
    attempt are cut to the remaining time. attempt_seconds: for each of connecting, sending and waiting for the
    response. The wait after the nth attempt is first_wait_seconds doubled n - 1 times, at most longest_wait_seconds,
    reduced by up to half at random, and never shorter than the API's Retry-After.
    """

    attempts: int = 6
    total_seconds: float = 30
    attempt_seconds: float = 15
    first_wait_seconds: float = 0.25
    longest_wait_seconds: float = 8

    def __post_init__(self) -> None:
        seconds = (self.total_seconds, self.attempt_seconds)
        waits = (self.first_wait_seconds, self.longest_wait_seconds)
        if self.attempts < 1 or min(seconds) <= 0 or min(waits) < 0:
            raise ValueError(
                "a retry policy must have at least 1 attempt, positive limits and non-negative waits"
            )

    def timeout_seconds(self, elapsed: float) -> float:
        """Return the timeout of an attempt that starts `elapsed` seconds after the call."""
        return max(0.001, min(self.attempt_seconds, self.total_seconds - elapsed))

    def wait_seconds(
        self, attempt: int, *, elapsed: float, retry_after: float | None, dice: float
    ) -> float | None:
        """Return the wait after a failed attempt, counted from 1; None to give up. dice: from 0 up to 1."""
        whole = min(self.first_wait_seconds * 2.0 ** min(attempt - 1, 64), self.longest_wait_seconds)
        wait = whole * (1 - dice / 2)
        if retry_after is not None:
            wait = max(wait, retry_after + dice * self.first_wait_seconds)
        return wait if attempt < self.attempts and elapsed + wait < self.total_seconds else None


def is_retried(outcome: Outcome) -> bool:
    """Return whether a retry may succeed. Every retry is safe, because the request has its key."""
    return isinstance(outcome, NoAnswer) or outcome.status in RETRIED_STATUSES


def retry_after_seconds(outcome: Outcome, now: datetime) -> float | None:
    """Return the Retry-After of a response, in seconds or as a date; None without a valid one."""
    text = "" if isinstance(outcome, NoAnswer) else outcome.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (zoned - now).total_seconds())
