"""Writes the tables of docs/cost.md: behind each comment that names a command, what that command prints.

.venv/bin/python -m docs.generators.cost_page
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "cost.md"
BLOCK = re.compile(r"(```sh\nhooksaga (?P<command>cost[^\n]*)\n```\n\n)(?:\|[^\n]*\n)*\n?")


def filled(text: str, run: Callable[[list[str]], str]) -> str:
    """The page with its tables anew; `run` gives a command's standard output."""
    return BLOCK.sub(lambda block: f"{block[1]}{run(shlex.split(block['command']))}\n", text)


def main() -> None:
    from typer.testing import CliRunner

    from hooksaga.cli.app import app

    PAGE.write_text(
        filled(PAGE.read_text(encoding="utf-8"), lambda words: CliRunner().invoke(app, words).stdout)
    )


if __name__ == "__main__":
    main()
