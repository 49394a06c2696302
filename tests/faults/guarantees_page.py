"""Writes docs/guarantees.md from a run of the fault suite: `make faults`.

As a plugin of pytest: `-p tests.faults.guarantees_page --guarantees-page FILE`. Nothing is written unless all passed.
"""

from pathlib import Path

import pytest

from tests.faults.promises import USUAL_OUTCOME, Tried, page


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guarantees-page", type=Path, help="write what was tried, and what came out, to this file"
    )


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


class _Writer:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Tried] = []
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed.append(report.nodeid)
        elif report.when == "call":
            self._rows += [Tried.read(row) for name, row in report.user_properties if name == "tried"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._failed or not self._rows:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        else:
            self._path.write_text(page(self._rows), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        what = f"unchanged: {len(self._failed)} tests did not pass" if self._failed else "written"
        terminalreporter.write_line(f"{self._path} is {what}")
