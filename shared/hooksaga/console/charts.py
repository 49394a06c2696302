"""Layout of the SVG charts of attempts: two for all endpoints, and a small one for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hooksaga.core.time_ranges import Span, TimeRange
from hooksaga.operations.attempt_rates import Rate

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 12, 24
SMALL_WIDTH, SMALL_HEIGHT = 150, 30
_STEPS = (1, 2, 5)
_LABELS = {
    TimeRange.HOUR: (timedelta(minutes=10), "%H:%M"),
    TimeRange.DAY: (timedelta(hours=4), "%H:%M"),
    TimeRange.WEEK: (timedelta(days=1), "%m-%d"),
}
"""Distance of the times below a chart, and how they are written."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one part of the time, in two parts; href links to its attempts."""

    x: float
    width: float
    completed_y: float
    completed_height: float
    failed_y: float
    failed_height: float
    href: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The latencies of one part of the time. p50 and p95 are y coordinates."""

    x: float
    p50: float
    p95: float
    href: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class Chart:
    """width and height of the chart; `bars` or `dots`, and the scale."""

    ticks: Sequence[Tick]
    times: Sequence[Tick]
    bars: Sequence[Bar] = ()
    dots: Sequence[Dot] = ()
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    floor: int = HEIGHT - BOTTOM

    def points(self, name: str) -> str:
        return " ".join(f"{dot.x:.1f},{getattr(dot, name):.1f}" for dot in self.dots)


Link = Callable[[Span], str]


def deliveries_chart(rates: Sequence[Rate], wanted: TimeRange, link: Link) -> Chart:
    """Finished attempts by part of the time: completed below, failed above."""
    top = nice_top(_most(rates))
    room = (WIDTH - LEFT - RIGHT) / len(rates)
    bars = [_bar(one, _x(place, len(rates)), room, top, link(one.span)) for place, one in enumerate(rates)]
    return Chart(ticks=_ticks(top, _count), times=_times(rates, wanted), bars=bars)


def endpoint_chart(rates: Sequence[Rate], link: Link) -> Chart:
    """The same for one endpoint, small and without scales; the highest bar fills it."""
    top, room = max(_most(rates), 1), SMALL_WIDTH / len(rates)
    bars = [
        _bar(one, place * room, room, top, link(one.span), top_at=1, floor=SMALL_HEIGHT - 1)
        for place, one in enumerate(rates)
    ]
    return Chart(
        ticks=(), times=(), bars=bars, width=SMALL_WIDTH, height=SMALL_HEIGHT, floor=SMALL_HEIGHT - 1
    )


def latency_chart(rates: Sequence[Rate], wanted: TimeRange, link: Link) -> Chart:
    """End-to-end latency by part of the time; the line bridges parts without deliveries."""
    top = nice_top(max((one.p95 for one in rates if one.p95 is not None), default=0))
    dots: list[Dot] = []
    for place, one in enumerate(rates):
        if one.p50 is not None and one.p95 is not None:
            x = _x(place + 0.5, len(rates))
            dots.append(Dot(x, _y(one.p50, top), _y(one.p95, top), link(one.span), one))
    return Chart(ticks=_ticks(top, _time), times=_times(rates, wanted), dots=dots)


def _most(rates: Sequence[Rate]) -> int:
    return max((one.completed + one.failed for one in rates), default=0)


def nice_top(most: float) -> float:
    """Return a readable end of the scale: 1, 2 or 5 times a power of ten, at least 5."""
    power = 1.0
    while True:
        for step in _STEPS:
            if most <= step * power and step * power >= 5:
                return step * power
        power *= 10


def _bar(
    rate: Rate,
    x: float,
    room: float,
    top: float,
    href: str,
    *,
    top_at: float = TOP,
    floor: float = HEIGHT - BOTTOM,
) -> Bar:
    completed, whole = (_y(n, top, top_at, floor) for n in (rate.completed, rate.completed + rate.failed))
    return Bar(
        x=x + room * 0.12,
        width=room * 0.76,
        completed_y=completed,
        completed_height=floor - completed,
        failed_y=whole,
        failed_height=completed - whole,
        href=href,
        rate=rate,
    )


def _x(place: float, places: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * place / places


def _y(value: float, top: float, top_at: float = TOP, floor: float = HEIGHT - BOTTOM) -> float:
    return floor - (floor - top_at) * value / top


def _ticks(top: float, label: Callable[[float], str]) -> list[Tick]:
    return [Tick(_y(top * part / 5, top), label(top * part / 5)) for part in range(6)]


def _times(rates: Sequence[Rate], wanted: TimeRange) -> list[Tick]:
    every, written = _LABELS[wanted]
    return [
        Tick(_x(place, len(rates)), f"{one.span.begin:{written}}")
        for place, one in enumerate(rates)
        if (one.span.begin - one.span.begin.replace(hour=0, minute=0, second=0, microsecond=0)) % every
        == timedelta(0)
    ]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _time(value: float) -> str:
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.0f} s"
