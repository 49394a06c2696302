"""Ending a delivery from the command line."""

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.xdist_group("cli_system")


def test_canceling_what_is_not_there_says_so(run: Run) -> None:
    result = run("sagas", "cancel", "999999999")
    assert result.exit_code == 1
    assert "saga_not_found (404)" in result.stderr
