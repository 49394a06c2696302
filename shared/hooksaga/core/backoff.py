"""Backoff: the wait of a saga before its next attempt.

The wait is `min(base_delay * 2^(attempt_count - 1), max_delay)`, where attempt_count already counts the attempt
that has failed. A jitter of 0 to 10 % is added, so that sagas that failed together are not retried together. The
jitter is not random: it is the first 8 bytes of SHA-256 over
"<saga_id>:<attempt_count>", read as a big-endian fraction of 2^64, times the jitter's share of the wait. The
same saga and attempt always wait equally long.
"""

import hashlib

RETRY_AFTER_CAP_SECONDS = 3600


def retry_delay_seconds(
    saga_id: int,
    attempt_count: int,
    *,
    base_delay_seconds: float,
    max_delay_seconds: float,
    jitter: float,
    retry_after_seconds: float | None = None,
) -> float:
    """Return the seconds from the failure to the next attempt. Retry-After only lengthens the wait, up to one hour."""
    exponent = min(attempt_count - 1, 60)  # 2^60 seconds is past any cap, and a float still holds it
    backoff = min(base_delay_seconds * 2.0**exponent, max_delay_seconds)
    wait = backoff * (1 + jitter * _fraction(saga_id, attempt_count))
    return max(wait, min(retry_after_seconds or 0, RETRY_AFTER_CAP_SECONDS))


def _fraction(saga_id: int, attempt_count: int) -> float:
    digest = hashlib.sha256(f"{saga_id}:{attempt_count}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
