"""Public ids of events, whole and shortened."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

PREFIX = "evt_"
DIGITS = 32
SHOWN_DIGITS = 8
"""A shortened id has so many digits of the beginning and of the end."""

MIN_BEGIN = 8
MIN_END = 6
_SHORTENED = re.compile(r"(?:evt_)?([0-9a-f]*)(?:…|\.\.\.)([0-9a-f]*)")
_PART = re.compile(r"(evt_)?([0-9a-f]{6,32})")


def event_id_text(webhook_id: UUID) -> str:
    """Return `evt_` and 32 hex digits, the public form of an event id."""
    return f"{PREFIX}{webhook_id.hex}"


def time_of_id(webhook_id: UUID) -> datetime | None:
    """Return when the id was made, to the millisecond, or None if it does not tell: a producer may choose its ids."""
    if webhook_id.version != 7:
        return None
    return datetime.fromtimestamp((webhook_id.int >> 80) / 1000, UTC)


def short_event_id(webhook_id: UUID) -> str:
    """Return the id with its middle left out. The digits of the beginning are its time, to about a minute."""
    return f"{PREFIX}{webhook_id.hex[:SHOWN_DIGITS]}…{webhook_id.hex[-SHOWN_DIGITS:]}"


@dataclass(frozen=True, slots=True)
class IdParts:
    """Hex digits of the beginning and of the end of an event id; either may be empty, not both."""

    begin: str
    end: str

    @property
    def first(self) -> UUID:
        """The lowest id with this beginning."""
        return UUID(self.begin.ljust(DIGITS, "0"))

    @property
    def last(self) -> UUID:
        """The highest id with this beginning."""
        return UUID(self.begin.ljust(DIGITS, "f"))


def read_id_parts(text: str) -> list[IdParts]:
    """Return the readings of a text as a whole or shortened event id, none for any other text.

    Of digits alone it is not known whether they are the beginning or the end.
    """
    text = text.strip().lower().replace("-", "")
    if found := _SHORTENED.fullmatch(text):
        begin, end = found[1], found[2]
        fits = len(begin) >= MIN_BEGIN or (not begin and len(end) >= MIN_END)
        return [IdParts(begin, end)] if fits and len(begin) + len(end) <= DIGITS else []
    if not (found := _PART.fullmatch(text)):
        return []
    digits, is_begin = found[2], found[1] is not None
    begins = [IdParts(digits, "")] if len(digits) >= MIN_BEGIN else []
    ends = [] if is_begin or len(digits) == DIGITS else [IdParts("", digits)]
    return begins + ends
