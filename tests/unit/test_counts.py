"""Counts as they are shown, and when there is anything to count."""

import pytest

from hooksaga.core.counts import MAX_COUNTED, Count


@pytest.mark.parametrize(
    ("count", "text", "is_any"),
    [
        (Count(0), "0", False),
        (Count(1), "1", True),
        (Count(9_999), "9,999", True),
        (Count(MAX_COUNTED, at_least=True), "10,000+", True),
        (Count(0, at_least=True), "0+", True),
    ],
)
def test_a_count_says_whether_there_are_more(count: Count, text: str, is_any: bool) -> None:
    assert (str(count), bool(count)) == (text, is_any)
