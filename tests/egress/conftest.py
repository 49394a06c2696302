"""The isolated network, once for all tests of a process."""

from collections.abc import Iterator

import pytest

from tests.egress.network import IsolatedNetwork, isolated_network, why_not


@pytest.fixture(scope="session")
def network() -> Iterator[IsolatedNetwork]:
    if reason := why_not():
        pytest.skip(reason)
    with isolated_network() as isolated:
        yield isolated
