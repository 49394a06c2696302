"""How a range of the operator's page is divided into bars and slices."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from hooksaga.core.time_ranges import SLICES, Span, TimeRange, parts_of, slices_of

DAY = datetime(2026, 3, 14, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("chosen", "length", "step", "endpoint_step"),
    [
        ("1h", HOUR, MINUTE, 2 * MINUTE),
        ("24h", 24 * HOUR, 30 * MINUTE, 30 * MINUTE),
        ("7d", 7 * 24 * HOUR, 3 * HOUR, 3 * HOUR),
    ],
)
def test_a_range_has_bars_of_a_length(
    chosen: str, length: timedelta, step: timedelta, endpoint_step: timedelta
) -> None:
    one = TimeRange(chosen)
    assert (one.length, one.step, one.endpoint_step) == (length, step, endpoint_step)


@pytest.mark.parametrize(
    ("begin", "end", "edges"),
    [
        (0, 3, [0, 1, 2, 3]),
        (0.5, 2.25, [0.5, 1, 2, 2.25]),
        (0.5, 2, [0.5, 1, 2]),
        (0.25, 0.75, [0.25, 0.75]),
        (-0.5, 1, [-0.5, 0, 1]),
    ],
)
@pytest.mark.parametrize("step", [MINUTE, 3 * HOUR])
def test_bars_begin_at_multiples_of_their_length(
    begin: float, end: float, edges: list[float], step: timedelta
) -> None:
    """Counted from midnight UTC. Only the first and the last bar may be shorter."""
    parts = parts_of(Span(DAY + begin * step, DAY + end * step), step)
    assert [one.begin for one in parts] == [DAY + at * step for at in edges[:-1]]
    assert [one.end for one in parts] == [DAY + at * step for at in edges[1:]]


@pytest.mark.parametrize("chosen", TimeRange)
def test_bars_stay_while_the_range_moves_on(chosen: TimeRange) -> None:
    now = DAY + timedelta(hours=7, minutes=12, seconds=40)
    before = parts_of(Span(now - chosen.length, now), chosen.step)
    later = parts_of(Span(now + MINUTE - chosen.length, now + MINUTE), chosen.step)
    assert set(before[2:-1]) < set(later)


def test_each_part_is_read_in_equal_slices_in_order() -> None:
    parts = [Span(DAY, DAY + 5 * MINUTE), Span(DAY + 5 * MINUTE, DAY + 6 * MINUTE)]
    slices = slices_of(parts)
    assert len(slices) == len(parts) * SLICES
    assert slices[:5] == [Span(DAY + at * MINUTE, DAY + (at + 1) * MINUTE) for at in range(5)]
    assert [one.end - one.begin for one in slices[5:]] == [timedelta(seconds=12)] * 5
    assert (slices[5].begin, slices[-1].end) == (parts[1].begin, parts[1].end)
    assert all(one.end == following.begin for one, following in pairwise(slices))
