"""Bills side by side, as a text table that is also Markdown."""

from collections.abc import Sequence

from hooksaga.cost.bill import TITLES, Bill
from hooksaga.cost.work import Load

PER_MILLION = "per million deliveries"


def table_lines(loads: Sequence[Load], bills: Sequence[Bill]) -> list[str]:
    head = ["US dollars a month", *map(_title, loads)]
    body = [[title, *(_money(getattr(bill, name)) for bill in bills)] for name, title in TITLES.items()]
    totals = ["**Total**", *(f"**{_money(bill.total)}**" for bill in bills)]
    pairs = zip(loads, bills, strict=True)
    shares = [PER_MILLION, *(_money(_per_million(load, bill)) for load, bill in pairs)]
    rows = [head, *body, totals, shares]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [_line(row, widths) for row in (head, rule, *body, totals, shares)]


def _title(load: Load) -> str:
    if not load.events:
        return "idle"
    failing = f", {load.failure_rate:.0%} fail" if load.failure_rate else ""
    return f"{_many(load.events)} x {load.fan_out:g}{failing}"


def _many(events: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if events >= unit:
            return f"{events / unit:g} {name}"
    return f"{events:g}"


def _per_million(load: Load, bill: Bill) -> float | None:
    return bill.total / load.deliveries * 1e6 if load.deliveries else None


def _money(dollars: float | None) -> str:
    return "-" if dollars is None else f"{dollars:,.2f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        row[0].ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
    ]
    return f"| {' | '.join(cells)} |"
