"""The pages on a real port, on the same system as the API's tests: one for each module."""

import pytest

from tests.api.conftest import api, folder, running
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages

__all__ = ["api", "folder", "pages", "running"]


@pytest.fixture
def pages(running: RunningSystem) -> Pages:
    """A browser that is signed in with a key that may do everything for every tenant."""
    return Pages(running.port).signed_in(running.key)
