"""Writes docs/hostile-cases.md from a run of all hostile cases: `make hostile-cases`.

As a plugin of pytest: `-p tests.hostile_page -m hostile --hostile-page FILE`. With --collect-only the page has
empty outcomes, which is what tests/docs compares the committed one with.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile_cases import Case, forget, measured, page

_CASE = ("section", "test", "tried", "came_out")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hostile-page", type=Path, help="write what came out of all hostile cases to this file"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--hostile-page")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(path, config), "hostile-page-writer")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Ignore notes of fixtures."""
    forget()
    result = yield
    case = Case.of(item, measured())
    if case is not None:
        assert case.came_out, "a hostile case must measure something"
        item.user_properties += [(name, getattr(case, name)) for name in _CASE]
    return result


class _Writer:
    def __init__(self, path: Path, config: pytest.Config) -> None:
        self._path = path
        self._config = config
        self._cases: list[Case] = []
        self._incomplete: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._config.option.collectonly:
            self._cases = [case for item in session.items if (case := Case.of(item)) is not None]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if not report.passed:
            self._incomplete.append(report.nodeid)
        elif report.when == "call" and "came_out" in properties:
            self._cases.append(Case(*(str(properties[name]) for name in _CASE)))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._incomplete or not self._cases:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        else:
            self._path.write_text(page(self._cases), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._incomplete:
            terminalreporter.write_line(
                f"{self._path} is unchanged: {len(self._incomplete)} cases did not pass"
            )
        else:
            terminalreporter.write_line(f"{len(self._cases)} hostile cases in {self._path}")
