"""Output of commands: text and tables on stdout, progress and warnings on stderr, JSON unchanged.

External text (payloads, responses, addresses) goes through `printable`, because a terminal would execute control
characters in it.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

WIDTH_WHEN_PIPED = 400
"""Width of tables in a pipe or file, which are never wrapped."""

Columns = Mapping[str, str | Callable[[Mapping[str, Any]], object]]
"""Titles of a table, and what is below each: a field of an item, or a function of the item."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def echo(line: str = "") -> None:
    """Print one line on stdout, without wrapping."""
    typer.echo(line)


def echo_error(line: str) -> None:
    """Print one line on stderr."""
    typer.echo(line, err=True)


def show_json(answer: bytes | Any) -> None:
    """Print an API response byte for byte, {} for an empty one; anything else as JSON."""
    if isinstance(answer, bytes):
        typer.echo((answer or b"{}").decode())
    else:
        typer.echo(json.dumps(answer, default=_jsonable))


def _jsonable(value: object) -> str:
    return moment_text(value) if isinstance(value, datetime) else str(value)


def moment_text(moment: datetime) -> str:
    """Format a time in UTC with a Z, like the API."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def short_time(text: str | None) -> str:
    """Format a time of the API in UTC to the second."""
    return "" if text is None else f"{text[:10]} {text[11:19]}Z"


def printable(text: str) -> str:
    """Escape control characters, including line ends, and unpaired surrogates."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode() for one in text
    )


def console(*, stderr: bool = False) -> "Console":
    """Return a console with the width of the terminal, or unlimited without one."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return (
        made
        if made.is_terminal
        else Console(file=made.file, highlight=False, markup=False, emoji=False, width=WIDTH_WHEN_PIPED)
    )


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "RenderableType":
    """Return a table without markup; None is an empty cell."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    return table


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Only one that must be wrapped needs rich, which takes longer to import than a call to the API."""
    cells = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(columns, *cells, strict=True)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH_WHEN_PIPED
    if sum(widths) + 2 * len(widths) > room:
        console().print(table_of(columns, cells))
        return
    for line in (columns, ["-" * width for width in widths], *cells):
        echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show_items(columns: Columns, items: Iterable[Mapping[str, Any]]) -> None:
    """Print items of the API as a table."""
    rows = [[one[cell] if isinstance(cell, str) else cell(one) for cell in columns.values()] for one in items]
    show_table(tuple(columns), rows)


def show_fields(fields: dict[str, object]) -> None:
    """Print one field per line; None is a dash."""
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        echo(f"{name:<{width}}  {'-' if value is None else printable(str(value))}")


def progress_bar() -> "Progress":
    """Return a progress bar on stderr, if it is a terminal; it disappears at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    watched = console(stderr=True)
    return Progress(*columns, console=watched, transient=True, disable=not watched.is_terminal)


def until_interrupted(step: Callable[[], None], seconds: float) -> None:
    """Repeat the step with a pause until Ctrl-C, which is a normal end."""
    import time

    try:
        while True:
            step()
            time.sleep(seconds)
    except KeyboardInterrupt:
        return
