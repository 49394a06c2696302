"""Writes docs/guarantees.md from a run of the fault suite: `make faults`.

As a plugin of pytest: `-p tests.faults.guarantees_page --guarantees-page FILE`. Nothing is written unless all passed.
With `--collect-only --guarantees-named FILE` nothing is run, and the rows that the tests name are written as JSON.
"""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.machine import made_of
from tests.faults.page import Run, page
from tests.faults.promises import USUAL_OUTCOME, Tried


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guarantees-page", type=Path, help="write what was tried, and what came out, to this file"
    )
    parser.addoption("--guarantees-named", type=Path, help="write the rows that the tests name to this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--guarantees-page")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(path), "guarantees-page-writer")


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
    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Tried] = []
        self._failed: list[str] = []
        self._skipped: list[str] = []
        self._passed = 0
        self._started = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped.append(_reason(report))
        elif report.failed:
            self._failed.append(report.nodeid)
        elif report.when == "call":
            self._passed += 1
            self._rows += [Tried.read(row) for name, row in report.user_properties if name == "tried"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._failed or not self._rows:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            return
        minutes = (time.monotonic() - self._started) / 60
        today = datetime.now(UTC).date().isoformat()
        run = Run(made_of(), today, minutes, self._passed, sorted(set(self._skipped)))
        self._path.write_text(page(self._rows, run), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        what = f"unchanged: {len(self._failed)} tests did not pass" if self._failed else "written"
        terminalreporter.write_line(f"{self._path} is {what}")


def _reason(report: pytest.TestReport) -> str:
    """Of a skip, with the test that says it."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return f"`{report.nodeid.split('::')[-1]}`: {why.removeprefix('Skipped: ')}"
