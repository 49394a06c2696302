"""Layout of two SVG charts of the last hour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hooksaga.operations.overview import Minute

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 12, 24
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Bar:
    """One minute's bar in two parts; href links to its attempts."""

    x: float
    width: float
    completed_y: float
    completed_height: float
    failed_y: float
    failed_height: float
    href: str
    minute: Minute


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The latencies of one minute. p50 and p95 are y coordinates."""

    x: float
    p50: float
    p95: float
    href: str
    minute: Minute


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


Link = Callable[[datetime, datetime], str]


def deliveries_chart(minutes: Sequence[Minute], link: Link) -> Chart:
    """Finished attempts by minute: completed below, failed above."""
    top = nice_top(max((one.completed + one.failed for one in minutes), default=0))
    bars = [_bar(one, place, len(minutes), top, link) for place, one in enumerate(minutes)]
    return Chart(ticks=_ticks(top, _count), times=_times(minutes), bars=bars)


def latency_chart(minutes: Sequence[Minute], link: Link) -> Chart:
    """End-to-end latency by minute; the line bridges minutes without deliveries."""
    top = nice_top(max((one.p95 for one in minutes if one.p95 is not None), default=0))
    dots: list[Dot] = []
    for place, one in enumerate(minutes):
        if one.p50 is not None and one.p95 is not None:
            x = _x(place + 0.5, len(minutes))
            dots.append(Dot(x, _y(one.p50, top), _y(one.p95, top), link(*_range(one)), one))
    return Chart(ticks=_ticks(top, _time), times=_times(minutes), dots=dots)


def nice_top(most: float) -> float:
    """Return a readable end of the scale: 1, 2 or 5 times a power of ten, at least 5."""
    power = 1.0
    while True:
        for step in _STEPS:
            if most <= step * power and step * power >= 5:
                return step * power
        power *= 10


def _bar(one: Minute, place: int, places: int, top: float, link: Link) -> Bar:
    room = (WIDTH - LEFT - RIGHT) / places
    completed, whole = _y(one.completed, top), _y(one.completed + one.failed, top)
    floor = HEIGHT - BOTTOM
    return Bar(
        x=_x(place, places) + room * 0.12,
        width=room * 0.76,
        completed_y=completed,
        completed_height=floor - completed,
        failed_y=whole,
        failed_height=completed - whole,
        href=link(*_range(one)),
        minute=one,
    )


def _range(one: Minute) -> tuple[datetime, datetime]:
    return one.minute, one.minute + timedelta(minutes=1)


def _x(place: float, places: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * place / places


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top


def _ticks(top: float, label: Callable[[float], str]) -> list[Tick]:
    return [Tick(_y(top * part / 5, top), label(top * part / 5)) for part in range(6)]


def _times(minutes: Sequence[Minute]) -> list[Tick]:
    return [
        Tick(_x(place + 0.5, len(minutes)), f"{one.minute:%H:%M}")
        for place, one in enumerate(minutes)
        if one.minute.minute % 10 == 0
    ]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _time(value: float) -> str:
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.0f} s"
