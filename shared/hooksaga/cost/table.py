"""Estimates side by side, as a text table that is also Markdown."""

from collections.abc import Sequence

from hooksaga.cost.bill import TITLES
from hooksaga.cost.estimate import Estimate
from hooksaga.cost.work import Load

PER_MILLION = "per million deliveries"


def table_lines(estimates: Sequence[Estimate]) -> list[str]:
    head = ["US dollars a month", *(title_of(one.load) for one in estimates)]
    body = [
        [title, *(_money(getattr(one.bill, name)) for one in estimates)] for name, title in TITLES.items()
    ]
    totals = ["**Total**", *(f"**{_money(one.bill.total)}**" for one in estimates)]
    shares = [PER_MILLION, *(_money(_per_million(one)) for one in estimates)]
    sizes = [
        ["latency", *(one.env.latency.value for one in estimates)],
        ["instance", *(one.env.database.instance_class for one in estimates)],
        ["events/s at the peak", *(_rate(one.peak_per_second) for one in estimates)],
        ["events/s that it carries", *(_rate(one.capacity.events_per_second) for one in estimates)],
        ["first limit", *(one.capacity.first.name for one in estimates)],
    ]
    return aligned([head, *body, totals, shares, *sizes])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose first row is its head. All columns but the first are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [_line(row, widths) for row in (rows[0], rule, *rows[1:])]


def title_of(load: Load) -> str:
    if not load.events:
        return "idle"
    failing = f", {load.failure_rate:.0%} fail" if load.failure_rate else ""
    return f"{_many(load.events)} x {load.fan_out:g}{failing}"


def _many(events: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if events >= unit:
            return f"{events / unit:g} {name}"
    return f"{events:g}"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def _per_million(one: Estimate) -> float | None:
    return one.bill.total / one.load.deliveries * 1e6 if one.load.deliveries else None


def _money(dollars: float | None) -> str:
    return "-" if dollars is None else f"{dollars:,.2f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        row[0].ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
    ]
    return f"| {' | '.join(cells)} |"
