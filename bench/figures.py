"""How a measurement is shown: a table for a person, JSON for a program."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict


def shown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of plain text, each column as wide as its widest cell."""
    cells = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells
    )


def rates_shown(rates: Mapping[str, Sequence[float]]) -> str:
    """A table of the deliveries a second of each run, and their median, by name."""
    runs = max(map(len, rates.values()))
    rows = [(name, *(f"{one:,.0f}" for one in (*of, statistics.median(of)))) for name, of in rates.items()]
    return shown(("deliveries/s", *(f"run {run + 1}" for run in range(runs)), "median"), rows)


def as_json(value: object) -> str:
    """A value with dataclasses in it."""
    return json.dumps(value, indent=2, default=asdict) + "\n"


def ms(value: float | None) -> str:
    """Milliseconds for a table; a dash where nothing was measured."""
    return "-" if value is None else f"{value:,.1f}"


def times(value: float, comparison: float) -> float:
    """How many times the comparison a value is."""
    return round(value / comparison, 2) if comparison else float("nan")
