"""Parsing and formatting of RFC 3339 times; other forms of ISO 8601 are not accepted."""

import re
from datetime import UTC, datetime, timedelta

MOMENT_RULE = "must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z"

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])",
    re.IGNORECASE,
)
_LEAP_SECOND = "60"
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def read_moment(text: object) -> datetime:
    """Return the time in UTC, to the microsecond.

    A leap second becomes the following second, as in POSIX time. A time outside the years 1 to 9999 in UTC becomes the
    first or last time of them. Raises ValueError with the rule for any other text.
    """
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(MOMENT_RULE)
    minute, second, fraction, offset = found.groups()
    is_leap = second == _LEAP_SECOND
    shown = f"{minute}:{'59' if is_leap else second}.{(fraction or '0')[:6]}{offset}"
    try:
        local = datetime.fromisoformat(shown.upper())
    except ValueError:
        raise ValueError(MOMENT_RULE) from None
    try:
        moment = local.astimezone(UTC)
        return moment.replace(microsecond=0) + timedelta(seconds=1) if is_leap else moment
    except OverflowError:
        return _FIRST if local.year == 1 else _LAST


def utc_text(moment: datetime) -> str:
    """Format a time in UTC with a Z, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
