from pathlib import Path

import pytest

from tests.wheel.archives import build


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels and the sdists."""
    return build(tmp_path_factory.mktemp("archives"))
