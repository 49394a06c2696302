"""Output of commands: text and tables on stdout, progress and warnings on stderr, JSON unchanged.

Text from outside (payloads, answers, addresses) goes through `printable`: it may hold control characters
that a terminal would obey.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

WIDTH_WHEN_PIPED = 400
"""A table that goes to a file or a filter is never folded to the width of a terminal."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def say(line: str = "") -> None:
    """One line on stdout, whatever its length."""
    typer.echo(line)


def complain(line: str) -> None:
    """One line on stderr."""
    typer.echo(line, err=True)


def show_json(answer: bytes | Any) -> None:
    """An API answer to the byte, {} for an empty one; anything else as JSON."""
    if isinstance(answer, bytes):
        typer.echo((answer or b"{}").decode())
    else:
        typer.echo(json.dumps(answer, default=_jsonable))


def _jsonable(value: object) -> str:
    return moment_text(value) if isinstance(value, datetime) else str(value)


def moment_text(moment: datetime) -> str:
    """UTC with a Z, as the API writes times."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def short_time(text: str | None) -> str:
    """A time of the API for people: UTC to the second."""
    return "" if text is None else f"{text[:10]} {text[11:19]}Z"


def printable(text: str) -> str:
    """The text with control characters, line ends among them, and lone surrogates written as escapes."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode() for one in text
    )


def console(*, stderr: bool = False) -> "Console":
    """As wide as the terminal; wide enough for anything where there is none."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return (
        made
        if made.is_terminal
        else Console(file=made.file, highlight=False, markup=False, emoji=False, width=WIDTH_WHEN_PIPED)
    )


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "RenderableType":
    """A table without markup: cells are printed as they are, made printable; None is an empty cell."""
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
    console().print(table_of(columns, rows))


def show_fields(fields: dict[str, object]) -> None:
    """One thing, a line per field; None is shown as a dash."""
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        say(f"{name:<{width}}  {'-' if value is None else printable(str(value))}")


def progress_bar() -> "Progress":
    """On stderr, and only where somebody watches; gone when it is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    watched = console(stderr=True)
    return Progress(*columns, console=watched, transient=True, disable=not watched.is_terminal)


def until_interrupted(step: Callable[[], None], seconds: float) -> None:
    """Repeat the step with that pause between, until Ctrl-C, which is the good way to end it."""
    import time

    try:
        while True:
            step()
            time.sleep(seconds)
    except KeyboardInterrupt:
        return
