"""Parsing of ages: `30d`, `12w`, `36h`."""

import re
from datetime import timedelta

AGE_RULE = "a number and d, w or h, such as 30d"

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"([0-9]{1,5})([hdw])")


def parse_age(text: str) -> timedelta:
    """Parse an age. Raises ValueError with the rule."""
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"must be {AGE_RULE}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
