"""Every failure on docs/failures-elsewhere.md names tests, and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "failures-elsewhere.md"
REPORTS = (
    "nodejs/node#7136",
    "oven-sh/bun#37438",
    "brianc/node-postgres#1482",
    "cloudevents/spec#702",
    "brianc/node-postgres#2718",
    "goauthentik/authentik#23876",
    "immich-app/static-pages#719",
)
"""Public reports of failures that this product had too."""

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith("| failure |")]


@cache
def names_in(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, kinds)
    )


def test_every_test_that_is_named_exists() -> None:
    named = {match.groups() for row in rows() for match in NAMED.finditer(row)}
    assert len(named) > 100
    assert sorted(f"{path}::{test}" for path, test in named if test not in names_in(path)) == []


def test_every_failure_is_held_by_a_test_or_says_why_not() -> None:
    assert len(rows()) > 100
    assert [row for row in rows() if not NAMED.search(row) and "Not run here: " not in row] == []


def test_no_failure_is_told_twice() -> None:
    told = [row.split(" | ")[0] for row in rows()]
    assert sorted({one for one in told if told.count(one) > 1}) == []


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_of_a_failure_that_was_here_too_has_one_row_and_its_tests(report: str) -> None:
    (row,) = [row for row in rows() if re.search(rf"{re.escape(report)}\b", row)]
    assert NAMED.search(row)
