"""The times that the operator's page can show, and how they are divided. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

SLICES = 5
"""Slices that each part of a range is read in: a sample of each says more than one of the whole part's end."""

_MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)


class TimeRange(StrEnum):
    """A range that ends now."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def length(self) -> timedelta:
        return _RANGES[self].length

    @property
    def step(self) -> timedelta:
        """Return the length of one bar of the charts."""
        return _RANGES[self].step

    @property
    def endpoint_step(self) -> timedelta:
        """Return the length of one bar of an endpoint's chart."""
        return _RANGES[self].endpoint_step


@dataclass(frozen=True, slots=True)
class _Division:
    length: timedelta
    step: timedelta
    endpoint_step: timedelta


_RANGES = {
    TimeRange.HOUR: _Division(timedelta(hours=1), timedelta(minutes=1), timedelta(minutes=2)),
    TimeRange.DAY: _Division(timedelta(hours=24), timedelta(minutes=30), timedelta(minutes=30)),
    TimeRange.WEEK: _Division(timedelta(days=7), timedelta(hours=3), timedelta(hours=3)),
}


@dataclass(frozen=True, slots=True)
class Span:
    """Begin is inclusive, end is not."""

    begin: datetime
    end: datetime


def parts_of(span: Span, step: timedelta) -> list[Span]:
    """Divide the span at the multiples of the step, so that bars stay as they are while the span moves on. The first
    and the last part may be shorter."""
    first = span.begin - (span.begin - _MIDNIGHT) % step + step
    edges = [span.begin]
    while first < span.end:
        edges.append(first)
        first += step
    edges.append(span.end)
    return [Span(begin, end) for begin, end in pairwise(edges)]


def slices_of(parts: Sequence[Span]) -> list[Span]:
    """Return SLICES slices of each part, in order."""
    return [
        Span(
            one.begin + place * (one.end - one.begin) / SLICES,
            one.begin + (place + 1) * (one.end - one.begin) / SLICES,
        )
        for one in parts
        for place in range(SLICES)
    ]
