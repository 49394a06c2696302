"""Cursors of lists that do not run by id alone: a few numbers as hex digits, opaque to the caller."""

import base64
from datetime import UTC, datetime, timedelta

from shared.core.errors import InvalidInput

_DIGIT_BYTES = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC) - _EPOCH


def write_cursor(*parts: int | datetime) -> str:
    """Whole numbers from 0 to 2**63 - 1, and times from 1970 on to the microsecond."""
    numbers = [part if isinstance(part, int) else _microseconds(part) for part in parts]
    return base64.b16encode(b"".join(number.to_bytes(_DIGIT_BYTES, "big") for number in numbers)).decode()


def read_cursor(text: str, parts: int) -> list[int]:
    """The numbers behind write_cursor. Raises InvalidInput for what it never wrote."""
    try:
        data = base64.b16decode(text)
    except ValueError:
        data = b""
    numbers = [
        int.from_bytes(data[at : at + _DIGIT_BYTES], "big") for at in range(0, len(data), _DIGIT_BYTES)
    ]
    if len(data) != parts * _DIGIT_BYTES or max(numbers) >= 2**63:
        raise invalid_cursor()
    return numbers


def moment_at(microseconds: int) -> datetime:
    """A time that was written. Raises InvalidInput for one that no calendar has."""
    if microseconds > _microseconds(_EPOCH + _LATEST):
        raise invalid_cursor()
    return _EPOCH + timedelta(microseconds=microseconds)


def invalid_cursor() -> InvalidInput:
    return InvalidInput(
        "invalid_cursor", "cursor is the `next` of a list's answer", field="cursor", status=422
    )


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
