"""docs/guarantees.md has a row for each fault that a test names, and none that no test names."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.faults.page import Run, page
from tests.faults.promises import PAGE, Promise, Tried
from tests.faults.sabotage import Sabotage

ROOT = PAGE.parents[1]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """Promises and faults, as the marks have them."""
    file: Path = tmp_path_factory.mktemp("guarantees") / "named.json"
    options = ["-ptests.faults.guarantees_page", "-pno:cacheprovider", "--collect-only", "-q", "-n0"]
    marked = [
        str(one) for one in (ROOT / "tests").rglob("test_*.py") if "mark.guarantee" in one.read_text("utf-8")
    ]
    command = [sys.executable, "-m", "pytest", *options, "--guarantees-named", str(file), *marked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout[-2000:]
    return {(promise, fault) for promise, fault in json.loads(file.read_text())}


@cache
def rows() -> frozenset[tuple[str, str]]:
    """Promises and faults, as the page has them. In a table of steps each column is a fault at each step."""
    found: set[tuple[str, str]] = set()
    promise, heads = "", list[str]()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            promise = line.removeprefix("## ")
        elif line.startswith(("| fault |", "| step |")):
            heads = cells(line)
        elif line.startswith("| ") and promise:
            found |= {(promise, fault) for fault in faults(heads, cells(line))}
    return frozenset(found)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def faults(heads: list[str], row: list[str]) -> list[str]:
    if heads[0] == "fault":
        return [row[0]]
    step = row[0]
    tried = [head for head, outcome in zip(heads[1:], row[1:], strict=True) if outcome != "-"]
    return [
        f"{head.removesuffix(' it')} {step.strip('`')}" if head.endswith(" it") else f"{step} {head}"
        for head in tried
    ]


def matches(named: tuple[str, str], row: tuple[str, str]) -> bool:
    pattern = ".+".join(map(re.escape, named[1].split("*")))
    return named[0] == row[0] and re.fullmatch(pattern, row[1]) is not None


def test_every_fault_that_a_test_names_is_on_the_page(named: set[tuple[str, str]]) -> None:
    """Otherwise: make faults."""
    assert len(named) > 80
    assert sorted(one for one in named if not any(matches(one, row) for row in rows())) == []


def test_nothing_is_on_the_page_that_no_test_names(named: set[tuple[str, str]]) -> None:
    assert len(rows()) > 200
    assert sorted(row for row in rows() if not any(matches(one, row) for one in named)) == []


def test_every_promise_has_a_section_and_an_entry_in_the_summary() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [promise for promise in Promise if f"\n## {promise}\n" not in text] == []
    links = set(re.findall(r"\(#([a-z-]+)\)", text))
    headings = {
        re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-")
        for head in re.findall(r"^## (.+)$", text, re.MULTILINE)
    }
    assert links == headings


def test_every_mistake_that_was_made_on_purpose_is_on_the_page() -> None:
    assert {(Promise.CAUGHT.value, mistake.value) for mistake in Sabotage} <= rows()


def test_a_page_says_what_could_not_be_run_and_shares_a_table_between_steps() -> None:
    run = Run("a machine", "2026-01-01", 3.4, 2, ["`test_x`: no namespace"])
    once = Tried(Promise.ARRIVES, "killed before commit a.b", 1, "arrived once")
    again = Tried(Promise.ARRIVES, "killed after commit a.b", 1, "arrived; 1 sent again")
    written = page(
        [once, again, Tried(Promise.FENCED, "x", 1, "dropped"), Tried(Promise.FENCED, "x", 2, "dropped")], run
    )
    assert "| `commit a.b` | arrived once | arrived; 1 sent again |" in written
    assert "| x | 3 | dropped |" in written
    assert "- On this machine: `test_x`: no namespace" in written
