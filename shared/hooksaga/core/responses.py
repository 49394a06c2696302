"""Stored parts of a receiver's response: excerpts of its headers and body, and the wait of Retry-After."""

import re
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

from hooksaga.core.attempts import MASK

EXCERPT_BYTES = 16 * 1024
HEADERS_CHARACTERS = 4 * 1024
MAX_RETRY_AFTER_SECONDS = 3600

_SECRET_HEADERS = frozenset({"set-cookie", "set-cookie2"})
_SECONDS = re.compile(r"[0-9]{1,1000}")
_DATE = re.compile(r"[ -~]{1,64}")


def body_excerpt(body: bytes) -> tuple[str, bool]:
    """Return the first 16 KiB as text, and whether the body was truncated.

    Undecodable bytes become U+FFFD; a character split by the limit is dropped. NUL is removed, because PostgreSQL
    cannot store it; other control characters stay.
    """
    truncated = len(body) > EXCERPT_BYTES
    kept = _without_split_character(body[:EXCERPT_BYTES]) if truncated else body
    return kept.decode("utf-8", "replace").replace("\0", ""), truncated


def headers_excerpt(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return response headers as lines `name: value`, names in lower case, up to 4 KiB of whole lines.

    Values of cookies are replaced by `***`. Undecodable bytes become U+FFFD. None without headers.
    """
    lines: list[str] = []
    room = HEADERS_CHARACTERS
    for raw_name, raw_value in headers:
        name = raw_name.decode("ascii", "replace").lower()
        value = MASK if name in _SECRET_HEADERS else raw_value.decode("utf-8", "replace")
        line = f"{name}: {value}".replace("\0", "").replace("\n", " ").replace("\r", " ")
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines) or None


def read_headers(excerpt: str) -> dict[str, str]:
    """Return the headers of an excerpt by name; values of a repeated header are joined by commas."""
    headers: dict[str, str] = {}
    for line in excerpt.split("\n"):
        name, _, value = line.partition(": ")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _without_split_character(body: bytes) -> bytes:
    """Drop an incomplete last character of up to three bytes. body: at least that long."""
    for back in range(1, 4):
        lead = body[-back]
        if lead < 0x80:
            return body
        if lead >= 0xC0:
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return body if back >= length else body[:-back]
    return body


def retry_after_seconds(value: str | None, now: float) -> int | None:
    """Return the wait, from 1 to 3600 seconds, of a Retry-After in seconds or in one of the three HTTP date forms.

    now: Unix seconds. None without a wait: no value, zero, a past date, or invalid text.
    """
    if value is None:
        return None
    text = value.strip(" \t")
    seconds = int(text) if _SECONDS.fullmatch(text) else _seconds_until(text, now)
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds > 0 else None


def _seconds_until(text: str, now: float) -> int:
    if not _DATE.fullmatch(text):
        return 0
    try:
        date = parsedate_to_datetime(text)
        # The asctime form has no zone; HTTP dates are in UTC.
        moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0
    return int(moment - now)
