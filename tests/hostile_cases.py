"""What hostile cases there are, what came out of each, and the page that says so.

A test with the mark `hostile(section)` is one or, with parameters, several cases. What comes out is noted where
it is measured: by the sender, the API client and the stories of the whole system. tests/hostile_page.py collects
the notes of a run; nothing of docs/hostile-cases.md is written by hand.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "hostile-cases.md"
FOLDERS = ("tests/egress", "tests/delivery", "tests/api", "tests/e2e")

SECTIONS = {
    "Callback URLs, when they are registered": "Every row of a table of known tricks that the text alone gives "
    "away, sent to the API of a system that allows nothing beyond the public internet.",
    "Callback URLs, when they are called": "Above all the other rows of the table: the system's resolver asks "
    "a name server that answers as the row says, in a network where every address answers.",
    "Name servers": "One delivery to `https://hook.example.com/hook` for each, or two where there are two "
    "outcomes, in the same network.",
    "Receivers": "One attempt of the sender over real TLS, or several.",
    "Receivers, through the whole system": "An event, a subscriber, and the saga that came of it.",
    "The environment": "Variables and files that other HTTP clients obey; one attempt to a good receiver.",
    "The verification handshake": "What the API answers to `POST /v1/subscriptions/{id}/verify`.",
    "Clients": "What the API answers, or that it ends the connection.",
}

_MOST_SHOWN = 6
_LONGEST = 110
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,;:./()-]*")
_SPELLED = {
    "api": "API",
    "http": "HTTP",
    "json": "JSON",
    "tls": "TLS",
    "url": "URL",
    "urls": "URLs",
    "utf8": "UTF-8",
}


class Weight(IntEnum):
    """Of all that a case notes only the weightiest kind is shown: the answers on the way to it are not."""

    ANSWER = 0
    REFUSAL = 1
    OUTCOME = 2


_noted: list[tuple[Weight, str]] = []


def note(outcome: str, weight: Weight = Weight.OUTCOME) -> None:
    """Something was measured."""
    _noted.append((weight, outcome))


def note_answer(status: int, problem: Any = None) -> None:
    """An answer of the API, with what it says where it is a problem."""
    weight = Weight.REFUSAL if status >= 400 else Weight.ANSWER
    parts = [str(status)]
    if problem is not None:
        parts += [problem["code"], *re.findall(r"\([a-z_]+[0-9]*\)$", problem["detail"])]
    note(" ".join(parts), weight)


def forget() -> None:
    _noted.clear()


def measured() -> str:
    """What was noted since forget(), each outcome once, in the order of their first times; may be empty."""
    weight = max((weight for weight, _ in _noted), default=Weight.ANSWER)
    outcomes = list(Counter(outcome for found, outcome in _noted if found is weight))
    if len(outcomes) <= _MOST_SHOWN:
        return ", ".join(outcomes)
    statuses = sorted({outcome.split()[0] for outcome in outcomes})
    return f"answers from {statuses[0]} to {statuses[-1]}"


@dataclass(frozen=True, order=True)
class Case:
    """One row of the page. `test` names a test, `tried` its parameters, where it has any."""

    section: str
    test: str
    tried: str
    came_out: str = ""

    @classmethod
    def of(cls, item: Any, came_out: str = "") -> "Case | None":
        """The case that a collected test is, if it is one."""
        mark = item.get_closest_marker("hostile")
        if mark is None:
            return None
        assert mark.args[0] in SECTIONS, f"{item.nodeid}: no section {mark.args[0]!r}"
        tried = item.callspec.id or "(empty)" if hasattr(item, "callspec") else ""
        return cls(mark.args[0], item.originalname, tried, came_out)


def page(cases: Iterable[Case]) -> str:
    """The page with these rows: sections in their order, tests and cases in the order of their names."""
    by_section = {section: sorted(case for case in cases if case.section == section) for section in SECTIONS}
    parts = [_HEAD]
    for section, rows in by_section.items():
        parts.append(f"## {section}\n\n{textwrap.fill(SECTIONS[section], 120)}\n")
        alone = [case for case in rows if not case.tried]
        if alone:
            parts.append(_table([(_title(case.test), case.came_out) for case in alone]))
        together = (case for case in rows if case.tried)
        for test, group in groupby(together, key=lambda case: case.test):
            parts.append(f"### {_title(test)}\n")
            parts.append(_table([(_cell(case.tried), case.came_out) for case in group]))
    return "\n".join(parts)


_HEAD = """# Hostile cases

Receivers, name servers, callback URLs and clients that mean harm, or that are broken in a way that looks the same, and
what hooksaga makes of each. `make hostile-cases` runs them all and writes this page: every entry on the right was
measured in that run. A word alone is the error code of an attempt ([their list](api.md#how-an-attempt-ended)), a number
is a status. An attempt that ended more than 1.5 seconds after its deadline would be marked as late. That a 2xx counts
although its body is broken is [a decision](decisions/0008-status-decides.md).
"""


def without_outcomes(text: str) -> str:
    """A page as it would be before anything has run."""
    return re.sub(r"^(\|.*\|) (?!came out|---)[^|]* \|$", r"\1  |", text, flags=re.MULTILINE)


def _table(rows: list[tuple[str, str]]) -> str:
    lines = [f"| {tried} | {came_out} |" for tried, came_out in rows]
    return "\n".join(["| tried | came out |", "|---|---|", *lines, ""])


def _title(test: str) -> str:
    words = " ".join(_SPELLED.get(word, word) for word in test.removeprefix("test_").split("_"))
    return words[0].upper() + words[1:]


def _cell(text: str) -> str:
    """Cut where it is very long; as code where a reader of Markdown could take it for markup or for a link."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ({len(text)} characters)"
    if _PLAIN.fullmatch(shown) and "//" not in shown:
        return shown
    shown = shown.replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    blank = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{blank}{shown}{blank}{fence}"
