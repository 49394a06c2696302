"""Cursors of lists that are not ordered by id alone: a few numbers as hex digits, opaque to the caller."""

import base64
import re
from datetime import UTC, datetime, timedelta

from hooksaga.core.errors import InvalidInput

_DIGIT_BYTES = 8
_DIGITS = 2 * _DIGIT_BYTES
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TIME = "0[0-2][0-9A-F]{14}"
"""From 1970 into the year 8820."""

_NUMBER = "[0-7][0-9A-F]{15}"
_FLAG = "0{15}[01]"

ID_CURSOR = f"(?!0{{16}}){_NUMBER}"
ATTEMPTS_CURSOR = f"{_TIME}{_NUMBER}"
FOLLOW_CURSOR = f"{_TIME}{_NUMBER}{_TIME}{_TIME}{_NUMBER}{_FLAG}"
ROUTING_CURSOR = f"[0-2]{_NUMBER}"
"""Pattern of `next` for each list. The API's description contains it, and any other text is refused."""


def write_cursor(*parts: int | datetime) -> str:
    """Write a cursor from integers from 0 to 2**63 - 1, and times from 1970 on, to the microsecond."""
    numbers = [part if isinstance(part, int) else _microseconds(part) for part in parts]
    return base64.b16encode(b"".join(number.to_bytes(_DIGIT_BYTES, "big") for number in numbers)).decode()


def read_cursor(text: str, form: str) -> list[int]:
    """Return the numbers of a cursor by write_cursor. Raises InvalidInput for any other text."""
    if not re.fullmatch(form, text):
        raise invalid_cursor()
    return [int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS)]


def moment_at(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def invalid_cursor() -> InvalidInput:
    return InvalidInput(
        "invalid_cursor", "cursor must be the `next` value of the previous page", field="cursor", status=422
    )


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
