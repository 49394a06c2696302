"""Writes docs/guarantees.md from a run of the fault suite: `make faults`.

As a plugin of pytest: `-p tests.faults.guarantees_page --guarantees-page FILE`. The page is written once every test has
passed. After a failure the rows of the others are kept: `make faults ARGS="--guarantees-resume --last-failed"` runs the
failed tests again and adds their rows.
With `--collect-only --guarantees-named FILE` nothing is run, and the rows that the tests name are written as JSON.
"""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.faults.machine import made_of
from tests.faults.page import Run, page
from tests.faults.promises import USUAL_OUTCOME, Tried

KEPT = Path(__file__).resolve().parents[2] / "build" / "guarantees.json"
"""Rows of a run in which a test failed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guarantees-page", type=Path, help="write what was tried, and what came out, to this file"
    )
    parser.addoption("--guarantees-resume", action="store_true", help="add to the rows of the last run")
    parser.addoption("--guarantees-named", type=Path, help="write the rows that the tests name to this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--guarantees-page")
    if path is not None and not hasattr(config, "workerinput"):
        kept = KEPT if config.getoption("--guarantees-resume") else None
        config.pluginmanager.register(_Writer(path, kept), "guarantees-page-writer")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marked test is a row of its own."""
    mark = item.get_closest_marker("guarantee")
    if mark is not None:
        promise, fault, *outcome = mark.args
        item.user_properties.append(
            ("tried", [promise.value, fault, 1, *(outcome or [USUAL_OUTCOME.get(promise, "as promised")])])
        )


def pytest_collection_finish(session: pytest.Session) -> None:
    path = session.config.getoption("--guarantees-named")
    if path is not None:
        marks = [mark for item in session.items for mark in item.iter_markers("guarantees")]
        named = {(mark.args[0].value, fault) for mark in marks for fault in mark.args[1:]}
        single = [mark for item in session.items for mark in item.iter_markers("guarantee")]
        named |= {(mark.args[0].value, mark.args[1]) for mark in single}
        path.write_text(json.dumps(sorted(named)))


class _Writer:
    def __init__(self, path: Path, kept: Path | None = None) -> None:
        self._path = path
        found: dict[str, Any] = {"rows": {}, "skipped": [], "minutes": 0.0}
        before = json.loads(kept.read_text(encoding="utf-8")) if kept else found
        self._rows: dict[str, list[Any]] = before["rows"]
        self._skipped: list[str] = before["skipped"]
        self._minutes: float = before["minutes"]
        self._failed: list[str] = []
        self._started = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped.append(_reason(report))
        elif report.failed:
            self._failed.append(report.nodeid)
        elif report.when == "call":
            self._rows[report.nodeid] = [row for name, row in report.user_properties if name == "tried"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        minutes = self._minutes + (time.monotonic() - self._started) / 60
        if self._failed or not self._rows:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            KEPT.parent.mkdir(exist_ok=True)
            kept = {"rows": self._rows, "skipped": self._skipped, "minutes": minutes}
            KEPT.write_text(json.dumps(kept), encoding="utf-8")
            return
        today = datetime.now(UTC).date().isoformat()
        run = Run(made_of(), today, minutes, len(self._rows), sorted(set(self._skipped)))
        rows = [Tried.read(row) for some in self._rows.values() for row in some]
        self._path.write_text(page(rows, run), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        what = f"unchanged: {len(self._failed)} tests did not pass" if self._failed else "written"
        terminalreporter.write_line(f"{self._path} is {what}")


def _reason(report: pytest.TestReport) -> str:
    """Return the reason of a skip, with its test."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return f"`{report.nodeid.split('::')[-1]}`: {why.removeprefix('Skipped: ')}"
