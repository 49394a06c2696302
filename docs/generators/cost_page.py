"""Writes the tables of docs/cost.md and docs/scale.md: behind each comment or command that names one.

.venv/bin/python -m docs.generators.cost_page
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from docs.generators.cost_tables import TABLES

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "cost.md", DOCS / "scale.md")
BLOCK = re.compile(r"(```sh\nhooksaga (?P<command>cost[^\n]*)\n```\n\n)(?:\|[^\n]*\n)*\n?")
NAMED = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n)(?:[^<\n][^\n]*\n)*(<!-- end -->)")


def filled(text: str, run: Callable[[list[str]], str]) -> str:
    """The page with its tables anew; `run` gives a command's standard output."""
    text = BLOCK.sub(lambda block: f"{block[1]}{run(shlex.split(block['command']))}\n", text)
    return NAMED.sub(lambda block: f"{block[1]}{_lines(TABLES[block['name']]())}{block[3]}", text)


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def run_cost(words: list[str]) -> str:
    from typer.testing import CliRunner

    from hooksaga.cli.app import app

    return CliRunner().invoke(app, words).stdout


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), run_cost), encoding="utf-8")


if __name__ == "__main__":
    main()
