"""The order of tests, and their distribution to the processes of a run with several."""

from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHARED_START = "tests/infra/"
"""Tests of this folder share a synthesis that takes as long as all of them: one process runs them."""


class FilesAndInfra(LoadFileScheduling):
    """One process runs all tests of a file, and one runs all of `tests/infra`."""

    def _split_scope(self, nodeid: str) -> str:
        return SHARED_START if nodeid.startswith(SHARED_START) else super()._split_scope(nodeid)


def long_but(names: Iterable[str], *often: str) -> list[Any]:
    """Parameters of a test, of which `make test` has some; the others are long."""
    return [name if name in often else pytest.param(name, marks=pytest.mark.long) for name in names]


def longest_files_first(items: list[pytest.Item]) -> None:
    """Order infra, which no other unit of work is as long as, then files with tests marked as slow, then all others.

    One that began last would run alone at the end. The many quick files fill up the processes that are done.
    """
    slow = {item.path for item in items if _is_slow(item)}
    items.sort(key=lambda item: (not item.nodeid.startswith(SHARED_START), item.path not in slow))


def _is_slow(item: pytest.Item) -> bool:
    return not item.get_closest_marker("skip") and item.get_closest_marker("slow") is not None
