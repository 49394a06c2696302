"""docs/hostile-cases.md has a row for every hostile case, and none for one that is gone."""

import re
import subprocess
import sys
from pathlib import Path

from tests.hostile_cases import FOLDERS, PAGE, without_outcomes

ROOT = PAGE.parents[1]


def test_the_page_has_the_cases_that_the_suites_have(tmp_path: Path) -> None:
    """Otherwise: make hostile-cases."""
    expected = tmp_path / "hostile-cases.md"
    options = ["-p", "tests.hostile_page", "-p", "no:cacheprovider", "-m", "hostile", "--collect-only", "-q"]
    command = [sys.executable, "-m", "pytest", *options, "--hostile-page", str(expected), *FOLDERS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout[-2000:]
    assert without_outcomes(PAGE.read_text("utf-8")) == expected.read_text("utf-8")


def test_every_row_has_an_outcome() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    assert len(rows) > 600
    assert [row for row in rows if row.endswith("|  |")] == []


def test_marks_stand_only_where_the_page_is_made_from() -> None:
    mark = re.compile(r"pytest\.mark\.hostile\(")
    marked = [file for file in (ROOT / "tests").rglob("test_*.py") if mark.search(file.read_text("utf-8"))]
    folders = {file.relative_to(ROOT).parent.as_posix() for file in marked}
    assert folders == set(FOLDERS)
