"""Draws docs/states.md from the tables in shared/hooksaga/core/saga.py: `python -m docs.generators.state_diagram`."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from hooksaga.core import saga

State = TypeVar("State", bound=StrEnum)

STATES_PAGE = Path(__file__).resolve().parents[1] / "states.md"


def states_page() -> str:
    """The whole page as Markdown."""
    essay = (saga.__doc__ or "").partition("Everything here is pure")[0].strip()
    return (
        "# States\n\nDrawn from `shared/hooksaga/core/saga.py` by "
        "`python -m docs.generators.state_diagram`; do not edit by hand.\n\n"
        f"{essay}\n\n## Saga\n\n{_diagram(saga.SAGA_MOVES)}\n## Job\n\n{_diagram(saga.JOB_MOVES)}"
    )


def _diagram(moves: Mapping[State, frozenset[State]]) -> str:
    first = next(iter(moves))
    lines = [f"    [*] --> {first}"]
    for state, following in moves.items():
        lines += [f"    {state} --> {one}" for one in moves if one in following]
        if not following:
            lines.append(f"    {state} --> [*]")
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    STATES_PAGE.write_text(states_page(), encoding="utf-8")
